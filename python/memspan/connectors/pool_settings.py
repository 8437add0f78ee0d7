# SPDX-License-Identifier: Apache-2.0
"""Settings of vLLM's pool connector, what it does not support, and this process's member of the pool."""

import dataclasses
import os
import threading
from typing import Any

from memspan.kv_pool import USUAL_STORE, KvPool

_TIMEOUT_S = 30


@dataclasses.dataclass(frozen=True)
class PoolSettings:
    """``kv_connector_extra_config``. Sizes are bytes, or texts such as "4G"."""

    store_url: str = USUAL_STORE
    share: int | str = 0  # of each worker
    largest_share: int | str = 64 << 30
    members: int = 64
    host_store: bool = True
    timeout_s: int = _TIMEOUT_S
    namespace: str = ""  # engines of different ones share nothing
    generated: bool = True  # whether blocks with generated tokens are stored
    loads: bool = True
    stores: bool = True

    @classmethod
    def of(cls, transfer: Any) -> "PoolSettings":
        """ValueError for settings that are not known."""
        extra = dict(transfer.kv_connector_extra_config or {})
        allowed = [field.name for field in dataclasses.fields(cls) if field.name not in ("loads", "stores")]
        if unknown := sorted(set(extra) - set(allowed)):
            raise ValueError(
                f"kv_connector_extra_config has {', '.join(unknown)}; allowed are {', '.join(allowed)}"
            )
        extra["loads"] = transfer.is_kv_consumer
        extra["stores"] = transfer.is_kv_producer
        return cls(**extra)


def _refuse(what: str, instead: str) -> None:
    raise ValueError(f"MemspanPoolConnector does not support {what}; {instead}")


def check_support(vllm_config: Any, kv_cache_config: Any) -> None:
    """ValueError for what would need more than this connector does, with what to do instead."""
    parallel = vllm_config.parallel_config
    for name in (
        "pipeline_parallel_size",
        "prefill_context_parallel_size",
        "decode_context_parallel_size",
    ):
        size = getattr(parallel, name, 1)
        if size > 1:
            _refuse(f"{name} {size}", "1 is allowed")
    groups = kv_cache_config.kv_cache_groups
    if len(groups) != 1:
        _refuse(
            f"caches of {len(groups)} groups (hybrid models)",
            "--disable-hybrid-kv-cache-manager makes one of those that have only attention",
        )
    kind = type(groups[0].kv_cache_spec).__name__
    if kind not in ("FullAttentionSpec", "MLAAttentionSpec"):
        _refuse(f"caches of {kind}", "FullAttentionSpec and MLAAttentionSpec are allowed")
    if not vllm_config.cache_config.enable_prefix_caching:
        # vLLM turns it off where the attention cannot go on behind a prefix, as latent attention on CPUs.
        _refuse(
            "engines without prefix caching",
            "leave out --no-enable-prefix-caching; some models have none (MLA on a CPU)",
        )
    speculative = vllm_config.speculative_config
    if speculative is not None and speculative.use_eagle():
        _refuse(f"speculative decoding by {speculative.method}", "ngram is allowed, or none")
    algorithm = vllm_config.cache_config.prefix_caching_hash_algo
    if "xxhash" in algorithm and "PYTHONHASHSEED" not in os.environ:
        _refuse(
            f"--prefix-caching-hash-algo {algorithm} without PYTHONHASHSEED, since each process has "
            "hashes of its own then",
            "set PYTHONHASHSEED to the same number for all engines, or use sha256",
        )


# A scheduler and a worker of one process are one member; the worker, which is there first, gives the
# share.
_lock = threading.Lock()
_shared: dict[str, list[Any]] = {}  # by store: the pool, and how many use it


def join_pool(settings: PoolSettings, share: int) -> KvPool:
    """This process's member; if it does not exist yet, it is created and gives so many bytes."""
    with _lock:
        entry = _shared.get(settings.store_url)
        if entry is None:
            pool = KvPool(
                settings.store_url,
                share,
                largest_share=settings.largest_share,
                members=settings.members,
                host_store=settings.host_store,
                timeout_s=settings.timeout_s,
            )
            entry = _shared[settings.store_url] = [pool, 0]
        entry[1] += 1
        return entry[0]


def leave_pool(settings: PoolSettings) -> None:
    """Ends it after its last user in this process."""
    with _lock:
        entry = _shared[settings.store_url]
        entry[1] -= 1
        if entry[1] == 0:
            del _shared[settings.store_url]
            entry[0].destroy()
