# SPDX-License-Identifier: Apache-2.0
"""A KV connector for vLLM (v1 interface) that keeps prefixes in a pool which many engines share.

    --kv-transfer-config '{"kv_connector": "MemspanPoolConnector",
      "kv_connector_module_path": "memspan.connectors.vllm_pool", "kv_role": "kv_both",
      "kv_connector_extra_config": {"store_url": "tcp://127.0.0.1:8574", "share": "4G"}}'

Full blocks of prompts and of what was generated go to the pool when they are computed; a request
whose prefix is in the pool gets it by a copy. docs/kv_pool.md has the settings, and what is
refused.

The scheduler's half (``pool_scheduler``) looks prefixes up and says which blocks to load and to store; the
worker's half (``pool_worker``) copies. The class has both halves, and a process uses the one of its
role.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memspan.connectors.pool_metrics import PoolPromMetrics, PoolStats
from memspan.connectors.pool_scheduler import PoolScheduler
from memspan.connectors.pool_settings import PoolSettings, check_support
from memspan.connectors.pool_worker import PoolHandshake, PoolWorker
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    SupportsHMA,
)
from vllm.v1.metrics.cache_hit_source import CacheHitSource

if TYPE_CHECKING:
    import torch


class MemspanPoolConnector(KVConnectorBase_V1, SupportsHMA):
    """vLLM calls it, and its documentation of KVConnectorBase_V1 says when. ValueError for settings and
    models that are not supported, ``memspan.Error`` when the pool cannot be joined. A pool that fails later
    is a pool without hits."""

    _cache_hit_source = CacheHitSource.HOST

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        settings = PoolSettings.of(vllm_config.kv_transfer_config)
        check_support(vllm_config, kv_cache_config)
        if role == KVConnectorRole.SCHEDULER:
            # What was evicted between lookup and copy is a miss that was noticed late.
            vllm_config.kv_transfer_config.kv_load_failure_policy = "recompute"
            self._scheduler = PoolScheduler(settings, vllm_config, kv_cache_config)
            self._worker: Any = None
        else:
            self._scheduler = None
            self._worker = PoolWorker(settings, vllm_config, kv_cache_config)

    @property
    def requires_kv_delivery(self) -> bool:
        """No worker waits for stores."""
        return False

    # ---- the worker's

    def register_kv_caches(self, kv_caches: "dict[str, torch.Tensor]") -> None:
        """The layers' tensors; joins the pool."""
        self._worker.register(kv_caches)

    def get_handshake_metadata(self) -> PoolHandshake:
        """The data from which the scheduler makes this worker's keys."""
        return self._worker.handshake()

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Copies the blocks that this step's requests have in the pool; complete on return."""
        self._worker.load(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing is under way."""

    def save_kv_layer(self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any) -> None:
        """Blocks are stored as a whole, at the step's end."""

    def wait_for_save(self) -> None:
        """Copies the blocks that this step has filled, so that none has to be kept longer."""
        self._worker.store(self._get_connector_metadata())

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Blocks that could not be loaded, since the last time."""
        return self._worker.take_failed()

    def get_kv_connector_stats(self) -> PoolStats | None:
        """Figures of this process's half since the last call."""
        return (self._worker or self._scheduler).take_stats()

    # ---- the scheduler's

    def set_xfer_handshake_metadata(self, metadata: Any) -> None:
        """The workers' answers, by tensor-parallel rank."""
        self._scheduler.set_salts([metadata[rank].salt for rank in sorted(metadata)])

    def get_num_new_matched_tokens(self, request: Any, num_computed_tokens: int) -> tuple[int, bool]:
        """How many tokens beyond those are in the pool; they come in the step itself."""
        return self._scheduler.matched(request, num_computed_tokens), False

    def update_state_after_alloc(self, request: Any, blocks: Any, num_external_tokens: int) -> None:
        """The request has blocks, into which so many tokens are to be loaded."""
        self._scheduler.allocated(request, blocks, num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> KVConnectorMetadata:
        """The workers' loads and stores in this step."""
        return self._scheduler.plan(scheduler_output)

    def update_connector_output(self, connector_output: Any) -> None:
        """The results of a step."""
        self._scheduler.update(connector_output)

    def request_finished(self, request: Any, block_ids: list[int]) -> tuple[bool, None]:
        """Its blocks are free: all was copied in the steps that filled them."""
        self._scheduler.finished(request)
        return False, None

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, None]:
        """The same, as vLLM calls it with its hybrid memory allocator."""
        self._scheduler.finished(request)
        return False, None

    def reset_cache(self) -> bool:
        """After a change of weights: nothing that is in the pool now is found by this engine any more,
        and what it stores from now on by no other."""
        self._scheduler.reset()
        return True

    # ---- both

    def shutdown(self) -> None:
        """Leaves the pool."""
        (self._worker or self._scheduler).close()

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> PoolStats:
        """From what was sent between processes."""
        return PoolStats(data=data or {})

    @classmethod
    def build_prom_metrics(
        cls, vllm_config: Any, metric_types: Any, labelnames: Any, per_engine_labelvalues: Any
    ) -> PoolPromMetrics:
        """For Prometheus."""
        return PoolPromMetrics(vllm_config, metric_types, labelnames, per_engine_labelvalues)
