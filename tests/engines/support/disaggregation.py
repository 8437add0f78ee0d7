# SPDX-License-Identifier: Apache-2.0
"""Prefill in one engine, decode in another."""

import random
from typing import Any

from support.server import Server

WANTS_DECODE = {"do_remote_decode": True, "do_remote_prefill": False}


def transfer(store: Any, policy: str = "fail", role: str = "kv_both", **extra: Any) -> dict[str, Any]:
    """The value of --kv-transfer-config."""
    return {
        "kv_connector": "MemspanConnector",
        "kv_connector_module_path": "memspan.connectors.vllm",
        "kv_role": role,
        "kv_load_failure_policy": policy,
        "kv_connector_extra_config": {"store_url": store.url, "host_store": False, **extra},
    }


def prompt(seed: int, length: int | None = None) -> list[int]:
    """Random tokens: 20 to 500, or so many."""
    draw = random.Random(seed)
    count = draw.randrange(20, 500) if length is None else length
    return [draw.randrange(3, 512) for _ in range(count)]


def prefill(server: Server, tokens: list[int], **more: Any) -> dict[str, Any]:
    """The params that the prefill engine answers with."""
    return server.complete(tokens, 1, dict(WANTS_DECODE), **more)["kv_transfer_params"]
