# SPDX-License-Identifier: Apache-2.0
"""The half of vLLM's pool connector that lives beside the scheduler: which prefixes are in the pool, and
which blocks a step loads and stores."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from memspan.connectors.pool_keys import key_of
from memspan.connectors.pool_metrics import PoolStats
from memspan.connectors.pool_settings import PoolSettings, join_pool, leave_pool
from memspan.errors import Error
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorMetadata
from vllm.logger import init_logger

logger = init_logger("vllm." + __name__)  # vLLM's handlers are those of "vllm"


@dataclasses.dataclass
class Blocks:
    """Blocks of a request, and vLLM's hashes of what they hold."""

    request_id: str
    block_ids: list[int]
    hashes: list[bytes]


@dataclasses.dataclass
class PoolMetadata(KVConnectorMetadata):
    """The scheduler's data for the workers in a step."""

    loads: list[Blocks] = dataclasses.field(default_factory=list)
    stores: list[Blocks] = dataclasses.field(default_factory=list)
    epoch: bytes = b""  # a part of all keys
    failures: int = 0  # steps with failed loads that the scheduler knows of


@dataclasses.dataclass
class _Tracked:
    """A request that has blocks."""

    request: Any
    stored: int = 0  # blocks, from the first one on


class PoolScheduler:
    """One thread calls it. Failures of the pool are logged and count as misses."""

    def __init__(self, settings: PoolSettings, vllm_config: Any, kv_cache_config: Any) -> None:
        self._settings = settings
        self._block_size = kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size
        hash_size = getattr(kv_cache_config, "hash_block_size", None) or self._block_size
        if self._block_size % hash_size != 0:
            raise ValueError(f"blocks of {self._block_size} tokens have hashes of {hash_size}")
        self._hashes_of_block = self._block_size // hash_size
        self._salts: list[bytes] = []
        self._pool: Any = None
        self._epoch = b""
        self._failures = 0
        self._tracked: dict[str, _Tracked] = {}
        self._first: dict[str, int] = {}  # the block from which on a request was looked up
        self._loads: list[Blocks] = []
        self._stats = PoolStats()

    def set_salts(self, salts: list[bytes]) -> None:
        """Keys of the workers, by rank."""
        self._salts = salts

    def _hashes(self, request: Any) -> list[bytes]:
        """Keys of its full blocks whose tokens are known."""
        step = self._hashes_of_block
        return [bytes(h) for h in request.block_hashes[step - 1 :: step]]

    def matched(self, request: Any, computed: int) -> int:
        """Tokens of full blocks beyond the computed ones that all workers find in the pool. At least
        one token of the request is left to be computed, since its output is wanted."""
        if not self._settings.loads or getattr(request, "skip_reading_prefix_cache", False):
            return 0
        first = computed // self._block_size
        last = (request.num_tokens - 1) // self._block_size
        hashes = self._hashes(request)[first:last]
        if computed % self._block_size != 0 or not hashes or not self._salts:
            return 0
        try:
            if self._pool is None:
                self._pool = join_pool(self._settings, 0)
            found = len(hashes)
            for salt in self._salts:
                if found > 0:
                    found = self._pool.lookup(key_of(salt, self._epoch, hashes[:found]))
        except Error as error:
            logger.warning("memspan: looking up request %s: %s", request.request_id, error)
            return 0
        self._first[request.request_id] = first
        self._stats.add("queried_tokens", len(hashes) * self._block_size)
        self._stats.add("hit_tokens", found * self._block_size)
        return found * self._block_size

    def allocated(self, request: Any, blocks: Any, tokens: int) -> None:
        """A request has its blocks, and so many tokens are to be loaded from where it was looked up."""
        self._tracked[request.request_id] = _Tracked(request)
        if tokens == 0:
            return
        ids = blocks.get_block_ids()[0]
        hashes = self._hashes(request)
        first, count = self._first.pop(request.request_id), tokens // self._block_size
        self._loads.append(
            Blocks(request.request_id, ids[first : first + count], hashes[first : first + count])
        )

    def plan(self, output: Any) -> PoolMetadata:
        """Loads and stores of a step that is about to run."""
        metadata = PoolMetadata(self._loads, [], self._epoch, self._failures)
        self._loads = []
        state = output.kv_connector_block_state
        if not self._settings.stores or state is None:
            return metadata
        for request_id, scheduled in output.num_scheduled_tokens.items():
            tracked = self._tracked.get(request_id)
            if tracked is None:
                continue
            request = tracked.request
            # After a failed load vLLM goes back to what is right.
            tracked.stored = min(tracked.stored, request.num_computed_tokens // self._block_size)
            known = request.num_tokens if self._settings.generated else request.num_prompt_tokens
            filled = min(request.num_computed_tokens + scheduled, known) // self._block_size
            filled = min(filled, len(request.block_hashes) // self._hashes_of_block)
            if filled <= tracked.stored:
                continue
            ids = state.get_block_ids(request_id)
            part = slice(tracked.stored, filled)
            metadata.stores.append(
                Blocks(request_id, list(ids[0][part]), self._hashes(request)[part])
            )
            tracked.stored = filled
        return metadata

    def update(self, output: Any) -> None:
        """vLLM has gone back for what could not be loaded, so that steps from now on are right."""
        if output.invalid_block_ids:
            self._failures += 1

    def finished(self, request: Any) -> None:
        """It has no blocks any more."""
        self._tracked.pop(request.request_id, None)
        self._first.pop(request.request_id, None)
        self._loads = [load for load in self._loads if load.request_id != request.request_id]

    def reset(self) -> None:
        """New keys from now on, which no other engine has."""
        self._epoch = os.urandom(16)
        for tracked in self._tracked.values():
            tracked.stored = 0
        logger.info("memspan: the KV pool's blocks are of former weights now")

    def take_stats(self) -> PoolStats | None:
        """Since the last time."""
        return self._stats.take()

    def close(self) -> None:
        """Leaves the pool."""
        if self._pool is not None:
            self._pool = None
            leave_pool(self._settings)
