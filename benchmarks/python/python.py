# SPDX-License-Identifier: Apache-2.0
"""What Python adds to memspan's calls, next to bare figures taken in the same round.

    python benchmarks/python/python.py [--rounds N] [--record FILE]

Run it by an interpreter that has memspan and numpy. Rounds alternate between ours and the bare side;
the table has medians and, where there are two sides, the median of the rounds' ratios.
"""

import platform
import statistics
import subprocess
import sys
import time

import numpy as np
import page
import shmem
from memfabric_hybrid import bm, get_last_err_msg
from memspan import __version__
from page import record

PIECES = 100_000
CALLS = 200_000
COPIES = 200
MIB = 1 << 20


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def repeat(count, function, *arguments):
    def loop():
        for _ in range(count):
            function(*arguments)

    return loop


def empty_loop():
    for _ in range(CALLS):
        pass


def start_interpreter(code):
    subprocess.run([sys.executable, "-c", code], check=True)


class Bench:
    def __init__(self):
        if shmem.shmem_init(0, 1, 64 * MIB) != 0:
            sys.exit(shmem.errors.last_error())
        self.heap = shmem.shmem_malloc(8 * MIB)
        self.source = np.ones(MIB, np.uint8)
        self.bare = np.zeros(MIB, np.uint8)
        if bm.initialize("tcp://127.0.0.1:18577", 1, 0, bm.BmConfig()) != 0:
            sys.exit(get_last_err_msg())
        self.pool = bm.create(0, 64 * MIB, 0)
        self.pool.join()
        there = self.pool.peer_rank_ptr(0, bm.BmMemType.HOST)
        sources = self.source.ctypes.data + np.arange(PIECES, dtype=np.uint64) % 1024
        targets = there + np.arange(PIECES, dtype=np.uint64) * 64
        sizes = np.full(PIECES, 8, np.uint64)
        self.arrays = (sources, targets, sizes)
        self.lists = tuple(array.tolist() for array in self.arrays)

    def put(self):
        """ns a call of 8 bytes, the C call and the reading of arguments included, the loop not."""
        call = seconds(repeat(CALLS, shmem.shmem_putmem, int(self.heap), int(self.heap) + 64, 8, 0))
        return (call - seconds(empty_loop)) / CALLS * 1e9

    def put_large(self):
        """(ours, bare) seconds of 1 MiB out of a numpy array"""
        ours = seconds(repeat(COPIES, shmem.shmem_putmem, int(self.heap), self.source, MIB, 0))
        bare = seconds(repeat(COPIES, np.copyto, self.bare, self.source))
        return ours, bare

    def batch(self, pieces):
        def call():
            if self.pool.copy_data_batch(*pieces, PIECES, bm.BmCopyType.H2G, 0) != 0:
                sys.exit(get_last_err_msg())

        return seconds(call)

    def one_piece(self):
        single = tuple(array[:1] for array in self.arrays)
        count = 1000

        def call():
            for _ in range(count):
                self.pool.copy_data_batch(*single, 1, bm.BmCopyType.H2G, 0)

        return seconds(call) / count


def measure(rounds):
    bench = Bench()
    figures = {name: [] for name in ("put", "large", "lists", "arrays", "import")}
    for _ in range(rounds):
        figures["put"].append(bench.put())
        ours, bare = bench.put_large()
        figures["large"].append(ours / bare)
        arrays = bench.batch(bench.arrays)
        figures["lists"].append((bench.batch(bench.lists) - arrays) * 1e3)
        figures["arrays"].append(bench.one_piece() * 1e3)
        ours = seconds(lambda: start_interpreter("import memspan"))
        bare = seconds(lambda: start_interpreter("pass"))
        figures["import"].append((ours - bare) * 1e3)
    bench.pool.destroy()
    bm.uninitialize()
    shmem.shmem_finalize()
    return {name: statistics.median(values) for name, values in figures.items()}


def table(figures, rounds):
    found = [
        ("put of 8 bytes", "us", figures["put"] * 1e-3, 0.15),
        ("put of 1 MiB of a numpy array, over numpy's copy", "", figures["large"], 1.05),
        (f"batch of {PIECES:,} pieces given as lists: more than as arrays", "us", figures["lists"] * 1e3, 30e3),
        ("batch of one piece as arrays", "us", figures["arrays"] * 1e3, 8e3),
        ("import memspan", "us", figures["import"] * 1e3, 60e3),
    ]
    rows = [record.Row(name, unit, ours=ours, target=target, of="ours", rounds=rounds) for name, unit, ours, target in found]
    versions = {"memspan": __version__, "Python": platform.python_version(), "numpy": np.__version__}
    return record.table("Python's calls", f"python benchmarks/python/python.py --rounds {rounds}", None, versions, rows)


def main():
    given = page.parser(__doc__).parse_args()
    one = table(measure(given.rounds), given.rounds)
    page.show(one)
    if given.record:
        record.add(given.record, "python", one)


if __name__ == "__main__":
    main()
