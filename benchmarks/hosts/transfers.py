#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers between two hosts: memspan's engine next to Mooncake's over TCP, NIXL's over UCX and iperf3.

    python benchmarks/hosts/transfers.py [--rounds 7] [--mooncake PYTHON] [--nixl PYTHON]

As root, by an interpreter that has memspan: the hosts are network namespaces with a wire between them.
The rivals are of interpreters of their own (``pip install mooncake-transfer-engine-non-cuda``, ``pip
install nixl``); one that is not given is left out. What is moved is the block of a cache: 122 pieces of
16 and 128 KiB, 8784 KiB together, in ordinary memory that both sides have registered, scattered. In each
round every side has both its processes started anew, writes and reads the block for a second each, and
compares what has arrived. The table has medians over the rounds, and of the ratios within each round.
"""

import argparse
import ctypes
import json
import mmap
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests/support"), str(Path(__file__).resolve().parent)]

MEMORY = 16 << 20  # of each process
PIECES = [128 << 10, 16 << 10] * 61
GAP = 4096
SECONDS = 1.0  # of one direction
LIMIT_S = 120
STORE_PORT = 23471


class Memory:
    """An anonymous mapping, every page of it there."""

    def __init__(self, fill):
        self.map = mmap.mmap(-1, MEMORY)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        ctypes.memset(self.address, fill, MEMORY)


def scattered(seed):
    """Offsets of the pieces in a random order, with a gap between them."""
    offsets, end = [0] * len(PIECES), 0
    for i in random.Random(seed).sample(range(len(PIECES)), len(PIECES)):
        offsets[i] = end
        end += PIECES[i] + GAP
    return offsets


MINE, THEIRS = scattered(1), scattered(2)


def must(call, code):
    if code != 0:
        sys.exit(f"transfers: {call}: {code}")


# ---- the sides: register() makes memory reachable and tells how; connect() gives a call for a direction


class MemspanSide:
    def __init__(self, role, addresses):
        from memspan.fabric.engine import TransferEngine

        self.engine = TransferEngine()
        name = f"{addresses[role]}:{10000 + role}"
        store = f"tcp://{addresses[1]}:{STORE_PORT}"
        must("initialize", self.engine.initialize(store, name, ("Prefill", "Decode")[role], 0, store_server_role="Decode"))
        self.name = name

    def register(self, memory):
        must("register_memory", self.engine.register_memory(memory.address, MEMORY))
        return {"name": self.name, "address": memory.address}

    def connect(self, memory, peer):
        mine = [memory.address + at for at in MINE]
        theirs = [peer["address"] + at for at in THEIRS]
        calls = {"write": self.engine.batch_transfer_sync_write, "read": self.engine.batch_transfer_sync_read}
        return lambda way: must(way, calls[way](peer["name"], mine, theirs, PIECES))


class MooncakeSide(MemspanSide):
    def __init__(self, role, addresses):
        from mooncake.engine import TransferEngine

        self.engine = TransferEngine()
        must("initialize", self.engine.initialize(addresses[role], "P2PHANDSHAKE", "tcp", ""))
        self.name = f"{addresses[role]}:{self.engine.get_rpc_port()}"


class NixlSide:
    def __init__(self, role, _addresses):
        from nixl_cu12._api import nixl_agent, nixl_agent_config

        self.agent = nixl_agent(f"agent{role}", nixl_agent_config(backends=["UCX"]))

    def register(self, memory):
        self.registered = self.agent.register_memory([(memory.address, MEMORY, 0, "")], mem_type="DRAM")
        return {"agent": self.agent.get_agent_metadata().hex(), "address": memory.address}

    def connect(self, memory, peer):
        remote = self.agent.add_remote_agent(bytes.fromhex(peer["agent"]))

        def pieces(base, offsets):
            return self.agent.get_xfer_descs([(base + at, size, 0) for at, size in zip(offsets, PIECES)], mem_type="DRAM")

        mine, theirs = pieces(memory.address, MINE), pieces(peer["address"], THEIRS)
        handles = {way: self.agent.initialize_xfer(way.upper(), mine, theirs, remote, b"") for way in ("write", "read")}

        def move(way):
            state = self.agent.transfer(handles[way])
            while state == "PROC":
                state = self.agent.check_xfer_state(handles[way])
            must(way, 0 if state == "DONE" else state)

        return move


SIDES = {"memspan": MemspanSide, "Mooncake": MooncakeSide, "NIXL": NixlSide}


# ---- in the processes


def tell(what):
    print("transfers:" + json.dumps(what), flush=True)


def own(side):
    """The process whose memory it is: what its bytes are it answers until its input ends."""
    memory = Memory(1)
    tell(side.register(memory))
    for line in sys.stdin:
        if line == "sum\n":
            tell([sum(memory.map[at : at + size]) for at, size in zip(THEIRS, PIECES)])


def ask(side):
    """The process that writes and reads; the parent passes lines between the two."""
    memory = Memory(2)
    side.register(memory)
    move = side.connect(memory, json.loads(sys.stdin.readline()))
    for at, size in zip(MINE, PIECES):
        memory.map[at : at + size] = random.randbytes(size)
    expected = [sum(memory.map[at : at + size]) for at, size in zip(MINE, PIECES)]
    move("write")
    tell("sum")
    if json.loads(sys.stdin.readline()) != expected:
        sys.exit("transfers: what was written has not arrived")
    ctypes.memset(memory.address, 0, MEMORY)
    move("read")
    if [sum(memory.map[at : at + size]) for at, size in zip(MINE, PIECES)] != expected:
        sys.exit("transfers: what was read is not what was written")
    rates = {}
    for way in ("write", "read"):
        began, calls = time.perf_counter(), 0
        while time.perf_counter() < began + SECONDS:
            move(way)
            calls += 1
        rates[way] = calls * sum(PIECES) / (time.perf_counter() - began) / 1e9
    tell(rates)


def worker(name, role, addresses):
    signal.alarm(LIMIT_S)
    side = SIDES[name](role, addresses)
    (ask if role == 0 else own)(side)
    sys.stdout.flush()
    os._exit(0)  # the end of a rival takes seconds


# ---- in the parent


def lines_of(process):
    """What a worker tells, among what its library prints."""
    for line in process.stdout:
        if line.startswith("transfers:"):
            yield line.removeprefix("transfers:")


def run_side(name, python, place, secret):
    """{"write": GB/s, "read": GB/s}"""
    environment = {**os.environ, "MEMSPAN_JOB_SECRET_FILE": secret, "UCX_TLS": "tcp,self", "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"MC_LOG_LEVEL": "error", "NIXL_LOG_LEVEL": "ERROR"}

    def start(role):
        command = place.inside(role, python, __file__, "--worker", name, str(role), *place.addresses)
        return subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    owner = start(1)
    processes = [owner]
    try:
        owned = lines_of(owner)
        reachable = next(owned, None)
        if reachable is None:
            sys.exit(f"transfers: the owner of {name} ended with {owner.wait()}")
        asker = start(0)
        processes.append(asker)
        asker.stdin.write(reachable)
        asker.stdin.flush()
        for told in lines_of(asker):
            if told != '"sum"\n':
                return json.loads(told)
            owner.stdin.write("sum\n")
            owner.stdin.flush()
            asker.stdin.write(next(owned))
            asker.stdin.flush()
        sys.exit(f"transfers: {name} ended with {asker.wait()}")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    if sys.argv[1:2] == ["--worker"]:
        return worker(sys.argv[2], int(sys.argv[3]), sys.argv[4:6])
    from jobs.namespaces import Namespaces, can_make_hosts
    from two_hosts import Place, iperf3

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mooncake")
    parser.add_argument("--nixl")
    chosen = parser.parse_args()
    if not can_make_hosts():
        sys.exit("transfers: making network namespaces needs root")
    pythons = {"memspan": sys.executable, "Mooncake": chosen.mooncake, "NIXL": chosen.nixl}
    names = [name for name, python in pythons.items() if python]
    rounds = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder, Namespaces(2) as hosts:
        secret = os.path.join(folder, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write("the secret of two hosts")
        place = Place(hosts)
        for number in range(chosen.rounds):
            sides = {"iperf3": lambda: {way: iperf3(place, 2)["iperf3"] for way in ("write", "read")}}
            for name in names:
                sides[name] = lambda name=name: run_side(name, pythons[name], place, secret)
            order = list(sides)
            order = order[number % len(order) :] + order[: number % len(order)]
            rounds.append({name: sides[name]() for name in order})
    print(f"| | memspan, GB/s | {' | '.join(f'{name}, GB/s | memspan / {name}' for name in ['iperf3', *names[1:]])} |")
    print("|---" * (2 + 2 * len(names)) + "|")
    for way in ("write", "read"):
        cells = [f"{statistics.median(r['memspan'][way] for r in rounds):.3g}"]
        for name in ["iperf3", *names[1:]]:
            cells.append(f"{statistics.median(r[name][way] for r in rounds):.3g}")
            cells.append(f"{statistics.median(r['memspan'][way] / r[name][way] for r in rounds):.2f}")
        print(f"| {way} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
