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
import random
import signal
import sys
import time

MEMORY = 96 << 20  # of each process
LAYERS = [128 << 10, 16 << 10] * 61
MANY = 1000  # of the 100,000 pieces: each is a request of its own, and takes as long as the others
LEAST_SECONDS = 0.02  # of a repetition
LIMIT = 240  # seconds of everything


def engine():
    from mooncake.engine import TransferEngine

    made = TransferEngine()
    code = made.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "")
    if code != 0:
        sys.exit(f"mooncake_rival: initialize: {code}")
    return made


class Memory:
    """An anonymous mapping, every page of it there."""

    def __init__(self, size: int, fill: int):
        self.map = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.size = size
        ctypes.memset(self.address, fill, size)


def own(pipe) -> None:
    """The process whose memory it is; answers what its bytes are until it is told to go."""
    made, memory = engine(), Memory(MEMORY, 1)
    if made.register_memory(memory.address, memory.size) != 0:
        sys.exit("mooncake_rival: register_memory")
    pipe.send((made.get_rpc_port(), memory.address))
    while (asked := pipe.recv()) is not None:
        pipe.send([memory.map[at : at + size] for at, size in asked])
    os._exit(0)  # its own end takes seconds


def scattered(sizes: list[int]) -> list[int]:
    """Offsets of pieces that lie in a random order, with pages between them."""
    offsets, end = [0] * len(sizes), 0
    for i in random.sample(range(len(sizes)), len(sizes)):
        offsets[i] = end
        end += sizes[i] + (4096 if sizes[i] >= 4096 else 64)
    return offsets


class Rival:
    def __init__(self, pipe, repetitions: int):
        self.engine, self.memory = engine(), Memory(MEMORY, 2)
        self.must("register_memory", self.engine.register_memory(self.memory.address, MEMORY))
        self.pipe, self.repetitions = pipe, repetitions
        port, self.remote = pipe.recv()
        self.peer = f"127.0.0.1:{port}"

    @staticmethod
    def must(call: str, code: int) -> None:
        if code != 0:
            sys.exit(f"mooncake_rival: {call}: {code}")

    def measure(self, name: str, size: int, sizes: list[int], factor: float = 1) -> None:
        """Both directions; what one transfer writes is compared."""
        local, remote = scattered(sizes), scattered(sizes)
        mine = [self.memory.address + at for at in local]
        theirs = [self.remote + at for at in remote]
        for way in ("write", "read"):
            if len(sizes) == 1:
                call = getattr(self.engine, f"transfer_sync_{way}")
                arguments = (self.peer, mine[0], theirs[0], sizes[0])
            else:
                call = getattr(self.engine, f"batch_transfer_sync_{way}")
                arguments = (self.peer, mine, theirs, sizes)
            if way == "write":
                self.spoil(local, sizes)
            self.must(way, call(*arguments))
            if way == "write":
                self.compare(local, remote, sizes)
            self.report(f"mooncake_{way}_{name}", size, lambda: call(*arguments), factor)

    def spoil(self, local: list[int], sizes: list[int]) -> None:
        for at, size in zip(local, sizes):
            self.memory.map[at : at + size] = random.randbytes(size)

    def compare(self, local: list[int], remote: list[int], sizes: list[int]) -> None:
        self.pipe.send(list(zip(remote, sizes)))
        for at, size, arrived in zip(local, sizes, self.pipe.recv()):
            if self.memory.map[at : at + size] != arrived:
                sys.exit(f"mooncake_rival: wrong bytes in a piece of {size}")

    def report(self, name: str, size: int, call, factor: float) -> None:
        values = []
        for _ in range(self.repetitions):
            began, times = time.perf_counter(), 0
            while time.perf_counter() - began < LEAST_SECONDS or times == 0:
                self.must(name, call())
                times += 1
            values.append((time.perf_counter() - began) / times * factor * 1e6)
        line(name, size, values)

    def register(self, size: int) -> None:
        values = []
        for _ in range(self.repetitions):
            memory = mmap.mmap(-1, size)
            address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
            began = time.perf_counter()
            self.must("register_memory", self.engine.register_memory(address, size))
            values.append((time.perf_counter() - began) * 1e6)
            self.must("unregister_memory", self.engine.unregister_memory(address))
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
