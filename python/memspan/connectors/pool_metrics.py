# SPDX-License-Identifier: Apache-2.0
"""The KV pool's figures in vLLM's log, and to Prometheus as ``vllm:memspan_pool_...``."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (
    KVConnectorPromMetrics,
    KVConnectorStats,
)

COUNTERS = {
    "queried_tokens": "Tokens of prompts that the pool was asked for.",
    "hit_tokens": "Tokens of these whose blocks were in the pool.",
    "loaded_blocks": "Blocks copied from the pool into the cache.",
    "loaded_bytes": "Bytes of these.",
    "load_seconds": "Time that these copies took.",
    "failed_blocks": "Blocks that were evicted or lost between the lookup and the copy; they are computed.",
    "stored_blocks": "Blocks copied from the cache into the pool.",
    "stored_bytes": "Bytes of these.",
    "store_seconds": "Time that storing took, including blocks that were already stored.",
    "present_blocks": "Blocks that were in the pool already when they were to be stored.",
    "rejected_blocks": "Blocks that did not fit into the pool.",
    "evicted_blocks": "Blocks that were evicted from the pool for those that this engine stored.",
}
GAUGES = {
    "shares": "Shares of memory on this host.",
    "capacity_bytes": "Bytes of all shares on this host.",
    "used_bytes": "Bytes of the blocks in them.",
    "blocks": "Blocks in them.",
}


class PoolStats(KVConnectorStats):
    """Counters since the last time, and gauges."""

    def reset(self) -> None:
        """Forgets all."""
        self.data = {}

    def add(self, name: str, value: float) -> None:
        """To a counter."""
        self.data[name] = self.data.get(name, 0) + value

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        """With those of another worker or step."""
        for name, value in other.data.items():
            if name in GAUGES:
                self.data[name] = value
            else:
                self.add(name, value)
        return self

    def reduce(self) -> dict[str, int | float]:
        """For vLLM's log, with the hit rate."""
        summary = dict(self.data)
        if queried := self.data.get("queried_tokens", 0):
            summary["hit_rate"] = round(self.data.get("hit_tokens", 0) / queried, 3)
        return summary

    def is_empty(self) -> bool:
        """Whether nothing happened."""
        return not self.data

    def take(self) -> "PoolStats | None":
        """The collected figures, which are reset; None for nothing."""
        if not self.data:
            return None
        taken, self.data = PoolStats(data=self.data), {}
        return taken


class PoolPromMetrics(KVConnectorPromMetrics):
    """Registers and records them."""

    def __init__(self, vllm_config: Any, metric_types: Any, labelnames: Any, values: Any) -> None:
        super().__init__(vllm_config, metric_types, labelnames, values)
        self._made = {}
        for name, text in COUNTERS.items():
            self._made[name] = self._counter_cls(
                name=f"vllm:memspan_pool_{name}", documentation=text, labelnames=self._labelnames
            )
        for name, text in GAUGES.items():
            self._made[name] = self._gauge_cls(
                name=f"vllm:memspan_pool_{name}",
                documentation=text,
                labelnames=self._labelnames,
                multiprocess_mode="mostrecent",
            )

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Figures of an engine."""
        labels = self.per_engine_labelvalues[engine_idx]
        for name, value in transfer_stats_data.items():
            metric = self._made[name].labels(*labels)
            if name in GAUGES:
                metric.set(value)
            else:
                metric.inc(value)
