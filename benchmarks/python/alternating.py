# SPDX-License-Identifier: Apache-2.0
"""In the processes of a measurement: sides that take turns, in batches of calls, for a bounded time.

Rank 0 prints "begin NAME SIZE" before a row (benchmarks/bounded.py), and "row NAME SIZE SIDE us of a call in each round".
"""

import os
import time
from dataclasses import dataclass

LONG_S = 0.1  # such a call needs none before it that is not timed
LEAST_ROUNDS = 3
MOST_CALLS = 20_000


@dataclass(frozen=True)
class Pace:
    least_s: float  # of a batch
    rounds: int
    budget_s: float  # of a row: where calls take long there are fewer rounds


def bind(rank, world):
    """To a core of its own, where there are enough; once the libraries have started, which take the cores that they may
    use for all there are."""
    if world <= len(os.sched_getaffinity(0)):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})


def times_of(sides, pace, meet=lambda: None, agree=lambda value: value):
    """{side: [s of a call in each round]}. Who goes first changes with every round; meet() is a barrier before each
    batch, agree() gives rank 0's value to all."""
    seconds = {name: agree(_seconds_of(call, pace.least_s, agree)) for name, call in sides.items()}
    counts = {name: max(1, min(MOST_CALLS, int(pace.least_s / max(took, 1e-7)))) for name, took in seconds.items()}
    round_s = sum(seconds[name] * (counts[name] + (seconds[name] < LONG_S)) for name in sides)
    rounds = max(min(LEAST_ROUNDS, pace.rounds), min(pace.rounds, int(pace.budget_s / max(round_s, 1e-7))))
    times = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            call = sides[name]
            if seconds[name] < LONG_S:
                call()
            meet()
            begin = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - begin) / counts[name])
        order.reverse()
    return times


def _seconds_of(call, least_s, agree):
    """How long a call takes, from few of them; from a single one where that takes long."""
    begin = time.perf_counter()
    call()
    first = agree(time.perf_counter() - begin)
    if first >= LONG_S:
        return first
    begin, calls = time.perf_counter(), 3
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


def begin(rank, name, size):
    if rank == 0:
        print("begin", name, size, flush=True)


def tell(name, size, times):
    for side, values in times.items():
        print("row", name, size, side, *(f"{value * 1e6:.4f}" for value in values), flush=True)
