# SPDX-License-Identifier: Apache-2.0
"""Leases on KV blocks that an engine keeps for others to read (docs/design/0023).

A lease is a slot of a worker's table and a generation that is used once. Other workers read a slot's
state from the table's memory, and write its heartbeat there.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOTS = 8192
SLOT_BYTES = 64  # a line: readers of one do not disturb another
HEARTBEAT = 8  # bytes from the slot's start
READ_BYTES = 24  # state, heartbeat, epoch
_WORDS = SLOT_BYTES // 8
_MOST_EARLY = 4096


class Lease(NamedTuple):
    """``slot`` below SLOTS; ``generation`` is above all that were used in the slot before."""

    slot: int
    generation: int

    def __str__(self) -> str:
        return f"{self.slot}:{self.generation}"

    @staticmethod
    def parse(text: object) -> "Lease":
        """From ``str()``, since routers in other languages cut integers of 64 bits. ValueError."""
        parts = text.split(":") if isinstance(text, str) else []
        if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
            raise ValueError(f"{text!r} is not a lease")
        lease = Lease(int(parts[0]), int(parts[1]))
        if lease.slot >= SLOTS or lease.generation >= 1 << 62:
            raise ValueError(f"{text!r} is not a lease: slots are below {SLOTS}")
        return lease

    def is_valid(self, words: "NDArray[np.uint64]", epoch: int) -> bool:
        """Whether a slot's words, as they are now, say that the blocks are what they were. They
        also do before the lease has begun at the worker: the scheduler already keeps the blocks."""
        return int(words[2]) == epoch and int(words[0]) <= self.held

    @property
    def held(self) -> int:
        """The state word while it holds."""
        return 2 * self.generation + 1


class LeasePool:
    """Gives out slots and generations (the scheduler's half). Not thread-safe."""

    def __init__(self) -> None:
        self._free = deque(range(SLOTS))
        # No generation of an earlier process of the same name is used again.
        self._next = time.time_ns()
        self._given: dict[str, Lease] = {}

    def give(self, request: str) -> Lease | None:
        """A lease for the request, which has none; None when all are given."""
        if not self._free:
            return None
        self._next += 1
        lease = self._given[request] = Lease(self._free.popleft(), self._next)
        return lease

    def take_back(self, request: str) -> None:
        """The request's lease has ended at all workers. Nothing happens for others."""
        lease = self._given.pop(request, None)
        if lease is not None:
            self._free.append(lease.slot)

    def __len__(self) -> int:
        """How many are given."""
        return len(self._given)


class _Held:
    def __init__(self, request: str, lease: Lease, heartbeat: int, now: float) -> None:
        self.request = request
        self.lease = lease
        self.heartbeat = heartbeat
        self.seen = now
        self.done: set[int] = set()
        self.readers = 0  # of the other engine; 0: none has told yet


class LeaseTable:
    """A worker's leases, whose ``words`` are to be registered for other workers. ``seconds``: how long a
    lease holds after its beginning or its last heartbeat. ``epoch`` distinguishes this process from
    an earlier one of the same name. Not thread-safe."""

    def __init__(self, seconds: float) -> None:
        self.epoch = secrets.randbits(62)
        self.words: NDArray[np.uint64] = np.zeros((SLOTS, _WORDS), np.uint64)
        self.words[:, 2] = self.epoch
        self._seconds = seconds
        self._held: dict[int, _Held] = {}
        self._early: dict[Lease, tuple[set[int], int]] = {}  # done before they began here

    def begin(self, request: str, lease: Lease, now: float) -> None:
        """The request's blocks stay as they are until ``finished`` names it."""
        words = self.words[lease.slot]
        held = _Held(request, lease, int(words[1]), now)
        held.done, held.readers = self._early.pop(lease, (set(), 0))
        self._held[lease.slot] = held
        words[0] = lease.held

    def done(self, lease: Lease, reader: int, readers: int) -> None:
        """One of the other engine's ``readers`` workers needs it no more."""
        held = self._held.get(lease.slot)
        if held is not None and held.lease == lease:
            held.done.add(reader)
            held.readers = readers
        elif lease.held > int(self.words[lease.slot, 0]):
            while len(self._early) >= _MOST_EARLY:
                del self._early[next(iter(self._early))]
            self._early.setdefault(lease, (set(), readers))[0].add(reader)

    def finished(self, now: float) -> tuple[set[str], set[str]]:
        """(requests that all readers have done, requests whose time is over): each is named once, and
        no reader takes their blocks for valid any more."""
        done, expired = set(), set()
        for held in list(self._held.values()):
            heartbeat = int(self.words[held.lease.slot, 1])
            if heartbeat != held.heartbeat:
                held.heartbeat, held.seen = heartbeat, now
            if 0 < held.readers <= len(held.done):
                done.add(held.request)
            elif now - held.seen >= self._seconds:
                expired.add(held.request)
            else:
                continue
            self._end(held)
        return done, expired

    def end_all(self) -> set[str]:
        """The requests of all leases, which have ended."""
        ended = {held.request for held in self._held.values()}
        for held in list(self._held.values()):
            self._end(held)
        return ended

    def _end(self, held: _Held) -> None:
        self.words[held.lease.slot, 0] = held.lease.held + 1
        del self._held[held.lease.slot]

    def __len__(self) -> int:
        """How many hold."""
        return len(self._held)
