# SPDX-License-Identifier: Apache-2.0
"""The connector's figures in vLLM's log and its Prometheus metrics."""

from __future__ import annotations

from typing import Any

from vllm.distributed.kv_transfer.kv_connector.v1.metrics import (
    KVConnectorPromMetrics,
    KVConnectorStats,
)

_LISTS = ("seconds", "bytes")
_COUNTS = ("failures", "expired")
_MILLION = 1e6


class Stats(KVConnectorStats):
    """``seconds`` and ``bytes`` of each request's read, and how many ``failures`` (of requests' reads) and
    ``expired`` leases there were, since the last time; ``leases``: how many are held now."""

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        super().__init__(data or {})
        if not data:
            self.reset()

    def reset(self) -> None:
        """Nothing has happened."""
        self.data = {name: [] for name in _LISTS} | {name: 0 for name in _COUNTS} | {"leases": 0}

    def aggregate(self, other: KVConnectorStats) -> KVConnectorStats:
        """Adds another interval's, or another worker's."""
        for name in (*_LISTS, *_COUNTS):
            self.data[name] += other.data[name]
        self.data["leases"] = max(self.data["leases"], other.data["leases"])
        return self

    def reduce(self) -> dict[str, int | float]:
        """For a line of the log."""
        seconds, sizes = self.data["seconds"], self.data["bytes"]
        line: dict[str, int | float] = {"Requests read": len(seconds)}
        if seconds:
            line["Avg read time (ms)"] = round(sum(seconds) / len(seconds) * 1000, 3)
            line["Avg MB per read"] = round(sum(sizes) / len(sizes) / _MILLION, 3)
            line["Throughput (MB/s)"] = round(sum(sizes) / max(sum(seconds), 1e-9) / _MILLION, 1)
        line["Failed reads"] = self.data["failures"]
        line["Expired leases"] = self.data["expired"]
        return line

    def is_empty(self) -> bool:
        """Whether there is nothing to report."""
        return not any(self.data.values())


class Metrics(KVConnectorPromMetrics):
    """The same as counters, histograms and a gauge of Prometheus, by engine."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._seconds = self._make(
            self._histogram_cls,
            "memspan_kv_read_seconds",
            "Time to read the KV blocks of a request from another engine.",
            buckets=[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10],
        )
        self._bytes = self._make(
            self._counter_cls, "memspan_kv_read_bytes", "Bytes of KV blocks read from other engines."
        )
        self._failures = self._make(
            self._counter_cls, "memspan_kv_failures", "Requests whose KV blocks have not come."
        )
        self._expired = self._make(
            self._counter_cls, "memspan_kv_expired_leases", "Leases on KV blocks that expired unread."
        )
        self._leases = self._make(
            self._gauge_cls, "memspan_kv_leases", "Requests whose KV blocks are kept for other engines."
        )

    def _make(self, kind: Any, name: str, text: str, **more: Any) -> dict[int, Any]:
        metric = kind(name=name, documentation=text, labelnames=self._labelnames, **more)
        return {
            engine: metric.labels(*values) for engine, values in self.per_engine_labelvalues.items()
        }

    def observe(self, transfer_stats_data: dict[str, Any], engine_idx: int = 0) -> None:
        """Adds an interval."""
        for seconds in transfer_stats_data["seconds"]:
            self._seconds[engine_idx].observe(seconds)
        self._bytes[engine_idx].inc(sum(transfer_stats_data["bytes"]))
        self._failures[engine_idx].inc(transfer_stats_data["failures"])
        self._expired[engine_idx].inc(transfer_stats_data["expired"])
        self._leases[engine_idx].set(transfer_stats_data["leases"])
