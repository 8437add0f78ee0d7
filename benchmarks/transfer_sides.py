# SPDX-License-Identifier: Apache-2.0
"""Engines that move pieces between the memory of two processes, all used alike: memspan's, Mooncake's, NIXL's.

A side is made by both processes: register() makes memory reachable and says how, connect() gives a call
that moves all pieces of a `Work` one way. Everything that can be prepared is, before.
"""

import array
import ctypes
import hashlib
import mmap
import random
import sys
from dataclasses import dataclass

GAP = 4096  # between pieces, or a cache line where they are smaller
LINE = 64


class Memory:
    """An anonymous mapping, or `size` bytes at `address`, which someone else keeps; every page of it is there."""

    def __init__(self, size, fill, address=None):
        if address is None:
            self.map = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.address, self.size = address, size
        self.bytes = memoryview((ctypes.c_char * size).from_address(address)).cast("B")
        self.fill(fill)

    def fill(self, byte):
        ctypes.memset(self.address, byte, self.size)

    def randomize(self, offsets, sizes):
        for at, size in zip(offsets, sizes):
            self.bytes[at : at + size] = random.randbytes(size)

    def digest(self, offsets, sizes):
        """Of all pieces, in this order."""
        digest = hashlib.blake2b()
        for at, size in zip(offsets, sizes):
            digest.update(self.bytes[at : at + size])
        return digest.hexdigest()


@dataclass(frozen=True)
class Work:
    """Pieces of these sizes, at offsets of either process's memory, in another random order on each."""

    sizes: list
    mine: list
    theirs: list
    room: int  # bytes of either memory

    @classmethod
    def scattered(cls, sizes):
        (mine, one), (theirs, other) = (_lay_down(sizes, seed) for seed in (1, 2))
        return cls(sizes, mine, theirs, max(one, other))


def _lay_down(sizes, seed):
    offsets, end = [0] * len(sizes), 0
    for i in random.Random(seed).sample(range(len(sizes)), len(sizes)):
        offsets[i] = end
        end += sizes[i] + (GAP if sizes[i] > GAP else LINE)
    return offsets, end


def must(call, code):
    if code != 0:
        sys.exit(f"{call}: {code}")


class MemspanSide:
    """`role` 1 hosts the store, at the port of addresses[1]."""

    def __init__(self, role, addresses, store_port):
        from memspan.fabric.engine import TransferEngine

        self.given = set()  # memory of the library, which is registered
        self.engine = TransferEngine()
        self.name = f"{addresses[role]}:{10000 + role}"
        store = f"tcp://{addresses[1]}:{store_port}"
        kind = ("Prefill", "Decode")[role]
        must("initialize", self.engine.initialize(store, self.name, kind, 0, store_server_role="Decode"))

    def numbers(self, values):
        return array.array("Q", values)

    def memory(self, size, fill):
        """The library's, which both processes map."""
        address = self.engine.trans_malloc(size)
        must("trans_malloc", 0 if address else "no memory")
        self.given.add(address)
        return Memory(size, fill, address)

    def progress(self):
        """Does what a process has to do while others connect to it."""

    def register(self, memory):
        if memory.address in self.given:
            return {"name": self.name, "address": memory.address}
        must("register_memory", self.engine.register_memory(memory.address, memory.size))
        return {"name": self.name, "address": memory.address}

    def connect(self, memory, peer, work):
        mine = self.numbers(memory.address + at for at in work.mine)
        theirs = self.numbers(peer["address"] + at for at in work.theirs)
        sizes, kind = self.numbers(work.sizes), "batch_transfer_sync"
        if len(work.sizes) == 1:
            mine, theirs, sizes, kind = mine[0], theirs[0], sizes[0], "transfer_sync"
        calls = {way: getattr(self.engine, f"{kind}_{way}") for way in ("write", "read")}
        return lambda way: must(way, calls[way](peer["name"], mine, theirs, sizes))


class MooncakeSide(MemspanSide):
    """Over TCP. It refuses a call with more pieces than its queue holds, so many are moved by several calls."""

    MOST = 1000  # pieces of a call
    given = frozenset()

    def __init__(self, role, addresses, _store_port):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        must("initialize", self.engine.initialize(addresses[role], "P2PHANDSHAKE", "tcp", ""))
        self.name = f"{addresses[role]}:{self.engine.get_rpc_port()}"

    def numbers(self, values):
        return list(values)

    def connect(self, memory, peer, work):
        moves = []
        for at in range(0, len(work.sizes), self.MOST):
            some = slice(at, at + self.MOST)
            part = Work(work.sizes[some], work.mine[some], work.theirs[some], work.room)
            moves.append(super().connect(memory, peer, part))
        if len(moves) == 1:
            return moves[0]

        def move(way):
            for each in moves:
                each(way)

        return move


class NixlSide:
    """Over its own UCX. has_thread: a thread of NIXL's polls in both processes; without it progress() has to be called
    until the first move is over and again and again later, by both where there is no one-sided access."""

    def __init__(self, role, _addresses, _store_port, has_thread=True):
        from nixl_cu12._api import nixl_agent, nixl_agent_config

        self.agent = nixl_agent(f"agent{role}", nixl_agent_config(enable_prog_thread=has_thread, backends=["UCX"]))
        self.remote = None

    def progress(self):
        self.agent.get_new_notifs()

    def register(self, memory):
        self.registered = self.agent.register_memory([(memory.address, memory.size, 0, "")], mem_type="DRAM")
        return {"agent": self.agent.get_agent_metadata().hex(), "address": memory.address}

    def connect(self, memory, peer, work):
        self.remote = self.remote or self.agent.add_remote_agent(bytes.fromhex(peer["agent"]))

        def pieces(base, offsets):
            return self.agent.get_xfer_descs([(base + at, size, 0) for at, size in zip(offsets, work.sizes)], mem_type="DRAM")

        mine, theirs = pieces(memory.address, work.mine), pieces(peer["address"], work.theirs)
        handles = {way: self.agent.initialize_xfer(way.upper(), mine, theirs, self.remote, b"") for way in ("write", "read")}

        def move(way):
            state = self.agent.transfer(handles[way])
            while state == "PROC":
                state = self.agent.check_xfer_state(handles[way])
            must(way, 0 if state == "DONE" else state)

        return move


SIDES = {"memspan": MemspanSide, "Mooncake": MooncakeSide, "NIXL": NixlSide}
