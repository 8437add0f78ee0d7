# SPDX-License-Identifier: Apache-2.0
"""The half of vLLM's pool connector that lives in a worker: its cache's memory, and the copies."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from memspan.connectors.cache_layout import layout_of, pieces_of
from memspan.connectors.pool_keys import key_of, model_identity, salt_of
from memspan.connectors.pool_metrics import PoolStats
from memspan.connectors.pool_scheduler import Blocks, PoolMetadata
from memspan.connectors.pool_settings import PoolSettings, join_pool, leave_pool
from memspan.errors import Error
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorHandshakeMetadata
from vllm.logger import init_logger

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

logger = init_logger("vllm." + __name__)

_LEAST_WAIT = 100  # times what it takes to look at all slots of the pool, before it is done again


@dataclasses.dataclass
class PoolHandshake(KVConnectorHandshakeMetadata):
    """The prefix of the keys of a worker's blocks."""

    salt: bytes


class PoolWorker:
    """One thread calls it. Failures of the pool are logged: blocks that could not be loaded are
    reported, those that could not be stored are not in the pool."""

    def __init__(self, settings: PoolSettings, vllm_config: Any, kv_cache_config: Any) -> None:
        self._settings = settings
        self._config = vllm_config
        self._blocks = kv_cache_config.num_blocks
        self._block_size = kv_cache_config.kv_cache_groups[0].kv_cache_spec.block_size
        self._salt = b""
        self._pool: Any = None
        self._failed: set[int] = set()
        self._failures = 0
        self._stats = PoolStats()
        self._count_again = 0.0

    def register(self, caches: "dict[str, torch.Tensor]") -> None:
        """The layers' tensors, by name. ValueError for layouts that cannot be, ``memspan.Error`` when the
        pool cannot be joined."""
        import vllm
        from vllm.distributed import get_tp_group

        self._group = get_tp_group()
        pieces, layouts = [], {}
        for name, tensor in caches.items():
            if tensor.device.type != "cpu":
                raise ValueError(
                    f"layer {name} has its cache on {tensor.device}; MemspanPoolConnector supports caches "
                    "in host memory"
                )
            layouts[name] = layout_of(tensor, self._blocks)
            pieces += pieces_of(tensor, self._blocks)
        self._bases = np.array([piece.base for piece in pieces], np.uint64)
        self._strides = np.array([piece.stride for piece in pieces], np.uint64)
        self._sizes = np.array([piece.bytes for piece in pieces], np.uint64)
        self._bytes = int(self._sizes.sum())
        self._salt = salt_of(
            {
                "vllm": vllm.__version__,
                "namespace": self._settings.namespace,
                "block_size": self._block_size,
                "layers": layouts,
                "rank": self._group.rank_in_group,
                "ranks": self._group.world_size,
                "hash": self._config.cache_config.prefix_caching_hash_algo,
                **model_identity(self._config),
            }
        )
        self._pool = join_pool(self._settings, self._settings.share)
        self._evicted = 0
        logger.info(
            "memspan: KV pool at %s, blocks of %d tokens and %d bytes in %d pieces, share of %d bytes",
            self._settings.store_url,
            self._block_size,
            self._bytes,
            len(pieces),
            self._settings.share,
        )

    def handshake(self) -> PoolHandshake:
        """For the scheduler."""
        return PoolHandshake(self._salt)

    def _addresses(self, blocks: Blocks) -> "NDArray[np.uint64]":
        ids = np.asarray(blocks.block_ids, np.uint64)
        return (self._bases + ids[:, None] * self._strides).reshape(-1)

    def load(self, metadata: PoolMetadata) -> None:
        """All that the step's requests have in the pool."""
        if not metadata.loads:
            return
        begin = time.perf_counter()
        failed: set[int] = set()
        for blocks in metadata.loads:
            failed |= self._load(blocks, metadata.epoch)
        self._stats.add("load_seconds", time.perf_counter() - begin)
        self._failed |= failed
        # What a step computes from blocks that are not there is wrong in all workers; vLLM computes
        # it once more, but it must not get into the pool.
        if self._any_worker(bool(failed)):
            self._failures += 1

    def _load(self, blocks: Blocks, epoch: bytes) -> set[int]:
        try:
            keys = key_of(self._salt, epoch, blocks.hashes)
            got = self._pool.get_pieces(keys, self._addresses(blocks), self._sizes)
        except (Error, ValueError) as error:
            logger.warning("memspan: loading blocks of request %s: %s", blocks.request_id, error)
            got = [False] * len(blocks.block_ids)
        failed = {block for block, is_there in zip(blocks.block_ids, got) if not is_there}
        self._stats.add("loaded_blocks", len(got) - len(failed))
        self._stats.add("loaded_bytes", (len(got) - len(failed)) * self._bytes)
        if failed:
            self._stats.add("failed_blocks", len(failed))
            logger.warning(
                "memspan: request %s: %d of %d blocks are not in the pool any more",
                blocks.request_id,
                len(failed),
                len(got),
            )
        return failed

    def _any_worker(self, value: bool) -> bool:
        if self._group.world_size == 1:
            return value
        import torch

        flag = torch.tensor([int(value)], dtype=torch.int32)
        torch.distributed.all_reduce(flag, torch.distributed.ReduceOp.MAX, self._group.cpu_group)
        return bool(flag.item())

    def store(self, metadata: PoolMetadata) -> None:
        """All blocks that the step has filled, unless it, or one before it that the scheduler did not
        know of, computed from missing blocks."""
        if not metadata.stores or metadata.failures < self._failures:
            return
        begin = time.perf_counter()
        for blocks in metadata.stores:
            self._store(blocks, metadata.epoch)
        self._stats.add("store_seconds", time.perf_counter() - begin)
        try:
            self._count_pool()
        except Error as error:
            logger.warning("memspan: the KV pool's stats: %s", error)

    def _store(self, blocks: Blocks, epoch: bytes) -> None:
        try:
            keys = key_of(self._salt, epoch, blocks.hashes)
            outcomes = self._pool.put_pieces_outcomes(keys, self._addresses(blocks), self._sizes)
        except (Error, ValueError) as error:
            logger.warning("memspan: storing blocks of request %s: %s", blocks.request_id, error)
            return
        stored = sum(outcome == 1 for outcome in outcomes)
        self._stats.add("stored_blocks", stored)
        self._stats.add("stored_bytes", stored * self._bytes)
        self._stats.add("present_blocks", sum(outcome == 2 for outcome in outcomes))
        self._stats.add("rejected_blocks", sum(outcome < 0 for outcome in outcomes))

    def _count_pool(self) -> None:
        """State of the whole pool; takes at most a hundredth of the time."""
        begin = time.monotonic()
        if begin < self._count_again:
            return
        stats = self._pool.stats()
        end = time.monotonic()
        self._count_again = end + _LEAST_WAIT * (end - begin)
        self._stats.add("evicted_blocks", stats["evicted"] - self._evicted)
        self._evicted = stats["evicted"]
        self._stats.data["shares"] = stats["shares"]
        self._stats.data["capacity_bytes"] = stats["capacity"]
        self._stats.data["used_bytes"] = stats["entry_bytes"]
        self._stats.data["blocks"] = stats["entries"]

    def take_failed(self) -> set[int]:
        """Blocks that could not be loaded."""
        failed, self._failed = self._failed, set()
        return failed

    def take_stats(self) -> PoolStats | None:
        """Since the last time."""
        return self._stats.take()

    def close(self) -> None:
        """Leaves the pool."""
        if self._pool is not None:
            self._pool = None
            leave_pool(self._settings)
