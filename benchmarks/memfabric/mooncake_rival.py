#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mooncake's transfer engine doing what memfabric_bench measures: two processes of this host, TCP.

    FOLDER/bin/python mooncake_rival.py [--repetitions N]

FOLDER is what install_rivals.sh made. Prints lines as memfabric_bench does: name, size, lower quartile,
unit, least, most, how many. The exit code is 1 when a transfer failed or a byte was wrong.
"""

import argparse
import ctypes
import mmap
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from transfer_sides import Memory, MooncakeSide, Work, must

ADDRESSES = ("127.0.0.1", "127.0.0.1")
MEMORY = 96 << 20  # of each process
LAYERS = [128 << 10, 16 << 10] * 61
MANY = 1000  # of the 100,000 pieces: each is a request of its own, and takes as long as the others
LEAST_SECONDS = 0.02  # of a repetition
LIMIT = 240  # seconds of everything


def own(pipe) -> None:
    """The process whose memory it is; answers what its bytes are until it is told to go."""
    side, memory = MooncakeSide(1, ADDRESSES, 0), Memory(MEMORY, 1)
    pipe.send(side.register(memory))
    while (work := pipe.recv()) is not None:
        pipe.send(memory.digest(work.theirs, work.sizes))
    os._exit(0)  # its own end takes seconds


class Rival:
    def __init__(self, pipe, repetitions: int):
        self.side, self.memory = MooncakeSide(0, ADDRESSES, 0), Memory(MEMORY, 2)
        self.side.register(self.memory)
        self.pipe, self.repetitions = pipe, repetitions
        self.peer = pipe.recv()

    def measure(self, name: str, size: int, sizes: list[int], factor: float = 1) -> None:
        """Both directions; what one transfer writes is compared."""
        work = Work.scattered(sizes)
        move = self.side.connect(self.memory, self.peer, work)
        self.memory.randomize(work.mine, sizes)
        move("write")
        self.pipe.send(work)
        if self.memory.digest(work.mine, sizes) != self.pipe.recv():
            sys.exit(f"mooncake_rival: wrong bytes in a piece of {size}")
        for way in ("write", "read"):
            self.report(f"mooncake_{way}_{name}", size, lambda way=way: move(way), factor)

    def report(self, name: str, size: int, call, factor: float) -> None:
        values = []
        for _ in range(self.repetitions):
            began, times = time.perf_counter(), 0
            while time.perf_counter() - began < LEAST_SECONDS or times == 0:
                call()
                times += 1
            values.append((time.perf_counter() - began) / times * factor * 1e6)
        line(name, size, values)

    def register(self, size: int) -> None:
        values = []
        for _ in range(self.repetitions):
            memory = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            began = time.perf_counter()
            must("register_memory", self.side.engine.register_memory(address, size))
            values.append((time.perf_counter() - began) * 1e6)
            must("unregister_memory", self.side.engine.unregister_memory(address))
        line("mooncake_register", size, values)


def line(name: str, size: int, values: list[float]) -> None:
    values.sort()
    quartile = values[len(values) // 4]
    print(name, size, f"{quartile:.6g} us {values[0]:.6g} {values[-1]:.6g}", len(values), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--repetitions", type=int, default=3)
    chosen = parser.parse_args()
    signal.alarm(LIMIT)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=own, args=(theirs,), daemon=True)
    process.start()
    rival = Rival(ours, chosen.repetitions)
    rival.measure("single", 4096, [4096])
    rival.measure("single", 16384, [16384])
    rival.measure("single", 65536, [65536])
    rival.measure("block", sum(LAYERS), LAYERS)
    for size in (32 << 10, 256 << 10, 2 << 20):
        rival.measure("scattered", size, [size] * 32)
    for size in (256, 4096):
        rival.measure("many", size, [size] * MANY, factor=100)
    rival.register(1 << 30)
    ours.send(None)
    process.join(10)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
