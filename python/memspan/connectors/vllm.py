# SPDX-License-Identifier: Apache-2.0
"""A KV connector for vLLM (v1 interface): prefill and decode in separate engines.

    --kv-transfer-config '{"kv_connector": "MemspanConnector",
      "kv_connector_module_path": "memspan.connectors.vllm", "kv_role": "kv_both",
      "kv_connector_extra_config": {"store_url": "tcp://127.0.0.1:8572"}}'

The prefill engine keeps a finished request's blocks under a lease, and the decode engine reads them.
docs/engines.md says how it is set up, docs/design/0023 why it is right. Its options
(``kv_connector_extra_config``):

- ``store_url``: where the store is ("tcp://127.0.0.1:8572"); ``host_store``: whether this engine
  hosts it if no store runs (true); ``host``: the address that others reach this engine at
  ("127.0.0.1");
- ``lease_s``: how long blocks are kept for an engine that is silent (30);
- ``model_id``: what to call the model, where two engines load the same from different folders;
- ``threads``: how many requests a worker reads at once (2); ``adopt``: whether a cache in the memory of the
  host is shared in place, which is faster (true).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from memspan.connectors import kv_stats, vllm_config as settings
from memspan.connectors.kv_scheduler import Orders, Scheduler
from memspan.connectors.kv_transfer import Results, Worker
from memspan.connectors.paged import KvWorker
from vllm.distributed import parallel_state
from vllm.distributed.kv_transfer.kv_connector.v1 import base
from vllm.distributed.kv_transfer.kv_connector.v1.base import KVConnectorBase_V1, KVConnectorRole
from vllm.logger import init_logger
from vllm.v1.request import RequestStatus

if TYPE_CHECKING:
    import torch

_USUAL_STORE = "tcp://127.0.0.1:8572"
_OPTIONS = {
    "store_url": str,
    "host_store": bool,
    "host": str,
    "lease_s": (int, float),
    "model_id": str,
    "threads": int,
    "adopt": bool,
}
_MOST_THREADS = 64

# vLLM filters what does not come from it.
logger = init_logger(f"vllm.{__name__}")

# What older generations do not have.
_Handshake: Any = getattr(base, "KVConnectorHandshakeMetadata", object)
_Results: Any = getattr(base, "KVConnectorTransferResults", None)
_SupportsHMA: Any = getattr(base, "SupportsHMA", object)


@dataclass
class Metadata(base.KVConnectorMetadata):
    """The scheduler's data for the workers in a step."""

    orders: Orders


@dataclass
class Handshake(_Handshake):
    """A worker's data for the scheduler, sent once."""

    worker: str


def _options(transfer: Any) -> dict[str, Any]:
    extra = dict(transfer.kv_connector_extra_config or {})
    for name, value in extra.items():
        if name not in _OPTIONS:
            raise ValueError(
                f'kv_connector_extra_config has "{name}", allowed are {", ".join(_OPTIONS)}'
            )
        kind: Any = _OPTIONS[name]
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise ValueError(f"kv_connector_extra_config: {name} is {value!r}")
    if not 1 <= extra.get("threads", 1) <= _MOST_THREADS:
        raise ValueError(f"threads is {extra['threads']}, allowed are 1 to {_MOST_THREADS}")
    if not 1 <= extra.get("lease_s", 1) <= 86400:
        raise ValueError(f"lease_s is {extra['lease_s']}, allowed are 1 to 86400 seconds")
    return extra


class MemspanConnector(KVConnectorBase_V1, _SupportsHMA):
    """Both halves, of which a process uses the one of its role. vLLM calls it, and its documentation of
    KVConnectorBase_V1 says when. ValueError for options that are not allowed and for engines that are set up
    in a way that it does not serve, ``memspan.Error`` when a worker cannot start."""

    def __init__(
        self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any = None
    ) -> None:
        # Older generations of vLLM have two arguments.
        if "kv_cache_config" in inspect.signature(KVConnectorBase_V1.__init__).parameters:
            super().__init__(vllm_config, role, kv_cache_config)  # type: ignore[call-arg]
        else:
            super().__init__(vllm_config, role)
        if kv_cache_config is None:
            raise settings.NotSupported(
                "NOT_SUPPORTED: this vLLM does not pass its caches to connectors; 0.11 and later do"
            )
        transfer = vllm_config.kv_transfer_config
        options = _options(transfer)
        groups = settings.groups_of(vllm_config, kv_cache_config)
        self._ids = settings.group_ids(kv_cache_config)
        self._caches = kv_cache_config
        self._config = vllm_config
        self._last = Results()
        self._had_leases = 0
        if role == KVConnectorRole.SCHEDULER:
            self._scheduler = Scheduler(groups, transfer.is_kv_producer, transfer.is_kv_consumer)
        else:
            self._adopts = options.get("adopt", True)
            self._worker = self._start(options, groups)

    def _start(self, options: dict[str, Any], groups: Sequence[Any]) -> Worker:
        parallel = self._config.parallel_config
        tensor = parallel_state.get_tp_group()
        pipeline = parallel_state.get_pp_group()
        self._shards = settings.shards_of(self._config, self._caches, tensor.rank_in_group)
        return Worker(
            KvWorker(
                options.get("store_url", _USUAL_STORE),
                options.get("host", "127.0.0.1"),
                options.get("host_store", True),
                settings.describe(self._config, self._caches, options),
            ),
            groups,
            pipeline.rank_in_group * parallel.tensor_parallel_size + tensor.rank_in_group,
            parallel.tensor_parallel_size * parallel.pipeline_parallel_size,
            lease_s=float(options.get("lease_s", 30)),
            threads=options.get("threads", 2),
            log=lambda text: logger.warning("memspan: %s", text),
        )

    @classmethod
    def get_required_kvcache_layout(cls, vllm_config: Any) -> str | None:
        """Heads outside of tokens, so that engines of different numbers of ranks can share; None where the
        layout is all the same."""
        model = vllm_config.model_config
        if model is None or model.use_mla:
            return None
        try:
            from vllm.v1.kv_cache_layout import KVCacheLayout
        except ImportError:
            return "HND"  # the name in older generations
        return KVCacheLayout.LBHNC.name

    # ---- the scheduler's

    def set_xfer_handshake_metadata(self, metadata: Mapping[int, Any]) -> None:
        """The results of the workers' ``get_handshake_metadata``, by rank; requests carry them to
        the other engine."""
        self._scheduler.workers = [metadata[rank].worker for rank in sorted(metadata)]

    def set_xfer_handshake_metadata_pp_aware(self, metadata: Mapping[tuple[int, int], Any]) -> None:
        """The same by (pipeline rank, tensor rank)."""
        self._scheduler.workers = [metadata[ranks].worker for ranks in sorted(metadata)]

    def on_new_request(self, request: Any) -> None:
        """Keeps the request's blocks in the other engine alive from now on."""
        self._scheduler.arrived(request)

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        """(tokens of the prompt that come from elsewhere, whether they come while others run)."""
        return self._scheduler.matched(request, num_computed_tokens)

    def get_loaded_kv_cache_group_ids(self, request: Any) -> tuple[int, ...]:
        """All groups that leave the engine: the request's own blocks come."""
        del request
        return self._ids

    def _of_groups(self, block_ids: Sequence[Sequence[int]]) -> list[Sequence[int]]:
        return [block_ids[number] for number in self._ids]

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        """The request has these blocks, the last of which so many tokens will fill."""
        self._scheduler.allocated(
            request, self._of_groups(blocks.get_block_ids()), num_external_tokens
        )

    def build_connector_meta(self, scheduler_output: Any) -> Metadata:
        """The workers' tasks in the next step."""
        del scheduler_output
        warnings, self._scheduler.warnings = self._scheduler.warnings, []
        for warning in warnings:
            logger.warning("memspan: %s", warning)
        return Metadata(self._scheduler.orders())

    def update_connector_output(self, connector_output: Any) -> None:
        """The results of all workers."""
        self._scheduler.reported(connector_output.finished_sending or ())

    def request_finished(
        self, request: Any, block_ids: Sequence[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        """(whether the blocks are needed on, what the decode engine needs to read them)."""
        return self.request_finished_all_groups(request, (block_ids,))

    def request_finished_all_groups(
        self, request: Any, block_ids: Sequence[Sequence[int]]
    ) -> tuple[bool, dict[str, Any] | None]:
        """The same for an engine with several groups of caches."""
        is_complete = request.status in (
            RequestStatus.FINISHED_LENGTH_CAPPED,
            RequestStatus.FINISHED_STOPPED,
        )
        return self._scheduler.finished(request, self._of_groups(block_ids), is_complete)

    def reset_cache(self) -> bool:
        """As after a change of the weights: what is kept for other engines is not read any more."""
        self._scheduler.end_leases()
        return True

    def take_events(self) -> Iterable[Any]:
        """None: the loaded blocks are the engine's own, and it reports them itself."""
        return ()

    # ---- the worker's

    def register_kv_caches(self, kv_caches: "Mapping[str, torch.Tensor]") -> None:
        """The caches by layer, which other workers may read from now on."""
        is_in_host = all(tensor.device.type == "cpu" for tensor in kv_caches.values())
        self._worker.register(
            kv_caches, self._caches.num_blocks, self._shards, self._adopts and is_in_host
        )

    def get_handshake_metadata(self) -> Any:
        """How requests name this worker."""
        return Handshake(str(self._worker.name))

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Begins to read what this step's metadata names, on threads."""
        del forward_context, kwargs
        metadata = self._get_connector_metadata()
        assert isinstance(metadata, Metadata)
        self._worker.start(metadata.orders)

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing to wait for: a request runs only after its blocks have come."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: "torch.Tensor", attn_metadata: Any, **kwargs: Any
    ) -> None:
        """Nothing to save: the other engine reads."""

    def wait_for_save(self) -> None:
        """Nothing to wait for."""

    def get_transfer_results(self, finished_req_ids: set[str]) -> Any:
        """Requests whose blocks may be given back, whose blocks have come, and those of the latter whose
        have not."""
        sent, received = self.get_finished(finished_req_ids)
        return _Results(sent or set(), received or set(), self._last.failed)

    def get_finished(
        self, finished_req_ids: set[str]
    ) -> tuple[set[str] | None, set[str] | None]:
        """The same without the failures, which older generations ask for as blocks."""
        del finished_req_ids
        self._last = self._worker.results()
        return self._last.sent or None, self._last.received or None

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Blocks that have not come, for generations of vLLM that do not ask for requests."""
        if _Results is not None:
            return set()
        return {block for blocks in self._last.blocks.values() for block in blocks}

    def get_kv_connector_stats(self) -> Any:
        """The workers' results since the last call."""
        if self.role == KVConnectorRole.SCHEDULER:
            return None
        last, self._last = self._last, Results()
        had, self._had_leases = self._had_leases, self._worker.leases
        stats = kv_stats.Stats(
            {
                "seconds": last.durations,
                "bytes": last.sizes,
                "failures": len(last.failed),
                "expired": last.expired,
                "leases": self._worker.leases,
            }
        )
        return None if stats.is_empty() and had == 0 else stats

    @classmethod
    def build_kv_connector_stats(cls, data: dict[str, Any] | None = None) -> Any:
        """From what ``get_kv_connector_stats`` gave in another process."""
        return kv_stats.Stats(data)

    @classmethod
    def build_prom_metrics(cls, *arguments: Any) -> Any:
        """memspan_kv_* in vLLM's metrics."""
        return kv_stats.Metrics(*arguments)

    def shutdown(self) -> None:
        """Ends it; others' reads of this worker fail from now on."""
        if self.role == KVConnectorRole.WORKER:
            self._worker.close()
