# SPDX-License-Identifier: Apache-2.0
"""The half of the connector that lives in each worker of an engine (docs/design/0023). Imports no vLLM."""

from __future__ import annotations

import dataclasses
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from memspan.connectors.kv_regions import Pieces
from memspan.connectors.kv_scheduler import Group, Orders, Pull, Source
from memspan.connectors.leases import HEARTBEAT, READ_BYTES, SLOT_BYTES, Lease, LeaseTable
from memspan.connectors.paged import KvWorker, Peer
from memspan.connectors.worker_name import WorkerName
from memspan.errors import Error, PeerFailed

if TYPE_CHECKING:
    import torch

_TABLE = "leases"
_LEAST_HEARTBEAT_S = 0.5


class LeaseEnded(Error):
    """The blocks may belong to another request by now."""


@dataclasses.dataclass
class Results:
    """The events since the last call, by request, and their figures."""

    sent: set[str] = dataclasses.field(default_factory=set)
    received: set[str] = dataclasses.field(default_factory=set)
    failed: set[str] = dataclasses.field(default_factory=set)  # of the received ones
    blocks: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # of the failed ones
    durations: list[float] = dataclasses.field(default_factory=list)  # s, of reads that succeeded
    sizes: list[int] = dataclasses.field(default_factory=list)  # bytes, of the same
    expired: int = 0  # leases that nobody did


class Worker:
    """``rank`` of ``ranks`` workers of this engine. ``log``: called with the reason why a request's
    blocks did not arrive. The engine's thread calls it; reads run on ``threads`` others."""

    def __init__(
        self,
        worker: KvWorker,
        groups: Sequence[Group],
        rank: int = 0,
        ranks: int = 1,
        *,
        lease_s: float = 30.0,
        threads: int = 2,
        log: Callable[[str], None] = print,
    ) -> None:
        self.worker = worker
        self._groups = list(groups)
        self._rank, self._ranks = rank, ranks
        self._lease_s = lease_s
        self._log = log
        self._leases = LeaseTable(lease_s)
        table = self._leases.words
        worker.share_table(_TABLE, table.ctypes.data, table.nbytes)
        self._lock = threading.Lock()
        self._results = Results()
        self._held: dict[str, Source] = {}  # whose leases this worker keeps alive
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._ends = threading.Event()
        # One word a thread that words are read into, and one that heartbeats are written from.
        self._words = np.zeros((threads + 1, 8), np.uint64)
        worker.register_memory(self._words.ctypes.data, self._words.nbytes)
        self._threads = [
            threading.Thread(target=self._run, args=(number,), name="memspan-reads", daemon=True)
            for number in range(threads)
        ]
        self._threads.append(
            threading.Thread(target=self._beat, args=(threads,), name="memspan-beats", daemon=True)
        )
        self._local = threading.local()
        for thread in self._threads:
            thread.start()

    def register(self, caches: "Mapping[str, torch.Tensor]", *arguments: Any) -> None:
        """As ``KvWorker.register``. ValueError for layers that are in no group."""
        known = {layer for group in self._groups for layer in group.layers}
        strange = sorted(set(caches) - known)
        if strange:
            raise ValueError(f"layers {', '.join(strange)} are in no group of caches")
        self.worker.register(caches, *arguments)

    def close(self) -> None:
        """Ends the reads that have begun, and everything."""
        self._ends.set()
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join(self._lease_s)
        self.worker.close()

    # ---- a step

    def start(self, orders: Orders) -> None:
        """Begins what the scheduler has ordered."""
        for request, lease in orders.leases.items():
            self._leases.begin(request, lease, time.monotonic())
        if orders.ends_leases:
            with self._lock:
                self._results.sent |= self._leases.end_all()
        with self._lock:
            self._held.update(orders.hold)
        for request, source in orders.release.items():
            with self._lock:
                self._held.pop(request, None)
            self._work.put(lambda source=source: self._tell_done(source))
        for request, pull in orders.pulls.items():
            self._work.put(lambda request=request, pull=pull: self._pull(request, pull))

    def results(self) -> Results:
        """The new events."""
        for _, text in self.worker.heard():
            self._hear(text)
        done, expired = self._leases.finished(time.monotonic())
        for request in expired:
            self._log(
                f"request {request}: its blocks were not read, and no heartbeat came for "
                f"{self._lease_s:g} s; they are given back"
            )
        with self._lock:
            results, self._results = self._results, Results()
        results.sent |= done | expired
        results.expired += len(expired)
        return results

    @property
    def name(self) -> WorkerName:
        """For requests. ValueError before ``register``."""
        return WorkerName(self.worker.name, self._leases.epoch, self.worker.directory)

    @property
    def leases(self) -> int:
        """How many leases others hold here."""
        return len(self._leases)

    def _hear(self, text: str) -> None:
        """'done LEASE READER READERS'; other messages are not the connector's."""
        try:
            word, lease, reader, readers = text.split(" ")
            if word == "done":
                self._leases.done(Lease.parse(lease), int(reader), int(readers))
        except ValueError:
            self._log(f"a message that this version does not know: {text!r}")

    # ---- on threads

    def _run(self, number: int) -> None:
        self._local.words = self._words[number]
        while (work := self._work.get()) is not None:
            work()

    def _beat(self, number: int) -> None:
        """Keeps leases elsewhere alive."""
        mine = self._words[number]
        while not self._ends.wait(max(self._lease_s / 4, _LEAST_HEARTBEAT_S)):
            with self._lock:
                held = list(self._held.values())
            mine[0] = time.time_ns()
            for source in held:
                for name, _, directory in source.workers:
                    try:
                        at = self._slot(self.worker.peer(name, directory), source.lease)
                        self.worker.write_bytes(name, mine.ctypes.data, at + HEARTBEAT, 8)
                    except (Error, ValueError, OSError):
                        pass  # who reads there will say so

    @staticmethod
    def _slot(peer: Peer, lease: Lease) -> int:
        if _TABLE not in peer.tables:
            raise Error(f"worker {peer.name} gives no leases")
        return peer.tables[_TABLE] + lease.slot * SLOT_BYTES

    def _check(self, peer: Peer, epoch: int, lease: Lease) -> None:
        """Checks that the memory still has the blocks of the lease."""
        mine = self._local.words
        self.worker.read_bytes(peer.name, mine.ctypes.data, self._slot(peer, lease), READ_BYTES)
        if not lease.is_valid(mine, epoch):
            raise LeaseEnded(
                f"worker {peer.name} keeps the blocks of lease {lease} no more: they were read before, "
                "their time was over, or it was restarted"
            )

    def _pull(self, request: str, pull: Pull) -> None:
        start = time.monotonic()
        failure, size = pull.failure, 0
        if not failure:
            try:
                size = self._read(pull)
            except Exception as error:  # noqa: BLE001: the engine decides what becomes of the request
                failure = str(error) or repr(error)
        if pull.source is not None:
            self._tell_done(pull.source)
        if failure:
            self._log(f"request {request}: its KV blocks have not come: {failure}")
        with self._lock:
            self._held.pop(request, None)
            self._results.received.add(request)
            if failure:
                self._results.failed.add(request)
                self._results.blocks[request] = [b for blocks in pull.mine for b in blocks]
            else:
                self._results.durations.append(time.monotonic() - start)
                self._results.sizes.append(size)

    def _read(self, pull: Pull) -> int:
        assert pull.source is not None
        epochs = {name: epoch for name, epoch, _ in pull.source.workers}
        peers = [self.worker.peer(name, directory) for name, _, directory in pull.source.workers]
        work = self._plan(peers, pull)
        for peer in work:  # before bytes are moved for nothing
            self._check(peer, epochs[peer.name], pull.source.lease)
        size = sum(self.worker.read(peer.name, pieces) for peer, pieces in work.items())
        for peer in work:  # what was read is what was kept
            self._check(peer, epochs[peer.name], pull.source.lease)
        return size

    def _plan(self, peers: list[Peer], pull: Pull) -> dict[Peer, Pieces]:
        """For each worker with some of this one's layers and heads: the pieces to read."""
        work: dict[Peer, Pieces] = {}
        for group, mine, theirs in zip(self._groups, pull.mine, pull.theirs):
            for layer in group.layers:
                if layer not in self.worker.layers:
                    continue  # another rank of this engine has it
                region = self.worker.layers[layer][0]
                head, end = region.first_head, region.first_head + region.heads
                while head < end:
                    peer, upto = self._who_has(peers, layer, head, end)
                    pieces = work.setdefault(peer, Pieces())
                    self.worker.add_heads(pieces, peer, layer, (head, upto), mine, theirs)
                    head = upto
        return work

    def _who_has(self, peers: list[Peer], layer: str, head: int, end: int) -> tuple[Peer, int]:
        """A worker with the head of the layer, and up to which head it has them."""
        mine = self.worker.layers[layer]
        for turn in range(len(peers)):  # ranks that hold the same are read by different ones
            peer = peers[(self._rank + turn) % len(peers)]
            regions = peer.layers.get(layer)
            if regions is None:
                continue
            if len(regions) != len(mine) or regions[0].bytes != mine[0].bytes:
                raise Error(
                    f"a head's part of a block of layer {layer} has {mine[0].bytes} bytes here, and "
                    f"{regions[0].bytes} at worker {peer.name}"
                )
            first, last = regions[0].first_head, regions[0].first_head + regions[0].heads
            if first <= head < last:
                return peer, min(end, last)
        raise Error(f"no worker of the other engine has head {head} of layer {layer}")

    def _tell_done(self, source: Source) -> None:
        """The other engine need not keep them for this worker any more."""
        for name, _, directory in source.workers:
            try:
                self.worker.tell(self.worker.peer(name, directory), f"done {source.lease} {self._rank} {self._ranks}")
            except (PeerFailed, Error, ValueError, OSError) as error:
                # It is gone, or the lease ends by itself.
                self._log(f"worker {name} was not notified that lease {source.lease} is done: {error}")
