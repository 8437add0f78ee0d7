# SPDX-License-Identifier: Apache-2.0
"""One process of the transfers of rivals.py: memspan's engine next to NIXL's or Mooncake's, in the same two processes.

Both engines have registered the same memory of both processes. Rank 0 moves; rank 1 sleeps meanwhile, but for a look
every 20 ms, once connections are made. Rows are named WAY-MEMORY-WORK; the sides are memspan and rival.
"""

import datetime
import functools
import time

import alternating
from transfer_sides import Memory, MemspanSide, MooncakeSide, NixlSide, Work
import workers

KIB, MIB = 1 << 10, 1 << 20
WORKS = {  # label, size of a row, pieces
    "block": ("cache block, 61 × 128 KiB + 61 × 16 KiB", 61 * 144 * KIB, [128 * KIB, 16 * KIB] * 61),
    "one4k": ("one", 4 * KIB, [4 * KIB]),
    "one64k": ("one", 64 * KIB, [64 * KIB]),
    "one1m": ("one", MIB, [MIB]),
    "one16m": ("one", 16 * MIB, [16 * MIB]),
    "scattered32k": ("32 scattered", 32 * KIB, [32 * KIB] * 32),
    "scattered256k": ("32 scattered", 256 * KIB, [256 * KIB] * 32),
    "scattered2m": ("32 scattered", 2 * MIB, [2 * MIB] * 32),
    "thousand256": ("1,000 scattered", 256, [256] * 1000),
    "many256": ("100,000 scattered", 256, [256] * 100_000),
    "many4k": ("100,000 scattered", 4 * KIB, [4 * KIB] * 100_000),
}
MEMORIES = {"ordinary": "ordinary memory", "library": "the library's memory"}
WAYS = ("write", "read")
PAUSE_S = 0.02
ADDRESSES = ("127.0.0.1", "127.0.0.1")


def rows(given):
    return [(f"{way}-{memory}-{name}", WORKS[name][1]) for memory in given.memory for name in given.works for way in WAYS]


def label(name):
    way, memory, work = name.split("-")
    return f"{MEMORIES[memory]}, {way}, {WORKS[work][0]}"


# NIXL's thread (--nixl-thread), which polls all the time, would take the cores from both sides where there are two;
# without it NIXL is as quick or quicker: its copies need the other process only until a connection is made, and every
# 20 s, when UCX asks whether it is still there.
def rival_of(given):
    if given.worker == "nixl":
        return functools.partial(NixlSide, has_thread=given.nixl_thread)
    return MooncakeSide


class Pair:
    """Both engines of one of the two processes, and the memory that both reach."""

    def __init__(self, dist, rank, rival):
        self.dist, self.rank = dist, rank
        store_port = [workers.free_port()]
        dist.broadcast_object_list(store_port)
        self.sides, self.reached = {}, {}
        for name, side in {"memspan": MemspanSide, "rival": rival}.items():
            if side is None:
                continue
            if rank == 0:
                dist.barrier()  # the store is there, and its owner
            self.sides[name] = side(rank, ADDRESSES, store_port[0])
            if rank == 1:
                dist.barrier()

    def prepare(self, kind, size):
        """All of the memory is registered, and its owner told."""
        make = Memory if kind == "ordinary" else self.sides["memspan"].memory
        self.memory = make(size, self.rank + 1)
        for name, side in self.sides.items():
            told = [None, None]
            self.dist.all_gather_object(told, side.register(self.memory))
            self.reached[name] = told[1]

    def connect(self, work):
        """{side: call with a way}; rank 0 only."""
        return {name: side.connect(self.memory, self.reached[name], work) for name, side in self.sides.items()}

    def meet(self, pause_s=0.0):
        """A barrier in which rank 1 looks after its engines: all the time while they connect, else after pauses."""
        barrier = self.dist.barrier(async_op=True)
        while self.rank == 1 and not barrier.is_completed():
            for side in self.sides.values():
                side.progress()
            time.sleep(pause_s)
        barrier.wait()

    def moved_right(self, work, move):
        """Whether random bytes are the same there after a write, and here again after a read."""
        self.memory.fill(self.rank + 1)
        self.dist.barrier()  # nothing arrives before that
        if self.rank == 0:
            self.memory.randomize(work.mine, work.sizes)
            sent = self.memory.digest(work.mine, work.sizes)
            move("write")
        self.meet()
        told = [sent if self.rank == 0 else self.memory.digest(work.theirs, work.sizes), None]
        self.dist.all_gather_object(told, told[0])
        same = [told[0] == told[1]]
        if self.rank == 0:
            self.memory.fill(0)
            move("read")
            same[0] = same[0] and self.memory.digest(work.mine, work.sizes) == sent
        self.meet()
        self.dist.broadcast_object_list(same, src=0)
        return same[0]


def work(given, todo, limit_s, rank, _world):
    """Measures the rows `todo`; whether all bytes were right."""
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=limit_s))
    pair = Pair(dist, rank, None if given.alone else rival_of(given))
    works = {name: Work.scattered(WORKS[name][2]) for name in given.works}
    alternating.bind(rank, 2)
    is_right, kind, connected = True, None, None
    for name, size in todo:
        way, memory, work_name = name.split("-")
        its_work = works[work_name]
        alternating.begin(rank, name, size)
        if memory != kind:
            kind = memory
            pair.prepare(kind, max(each.room for each in works.values()))
        if connected != (memory, work_name):
            connected = (memory, work_name)
            moves = pair.connect(its_work) if rank == 0 else dict.fromkeys(pair.sides)
            wrong = [side for side, move in moves.items() if not pair.moved_right(its_work, move)]
            if wrong and rank == 0:
                print(f"# ERROR transfers of {memory} memory, {work_name}: wrong bytes by {', '.join(wrong)}", flush=True)
            is_right = is_right and not wrong
        if rank == 0 and not wrong:
            calls = {side: lambda move=move: move(way) for side, move in moves.items()}
            alternating.tell(name, size, alternating.times_of(calls, given.pace))
        pair.meet(PAUSE_S)
    return is_right
