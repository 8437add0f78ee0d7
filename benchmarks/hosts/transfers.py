#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Transfers between two hosts: memspan's engine next to Mooncake's over TCP, NIXL's over UCX and iperf3.

    python benchmarks/hosts/transfers.py [--rounds 7] [--mooncake PYTHON] [--nixl PYTHON] [--record FILE]

As root, by an interpreter that has memspan: the hosts are network namespaces with a wire between them.
The rivals are of interpreters of their own, or of the one that ``benchmarks/install_rivals.sh`` makes; one
that is not given is left out. What is moved is the block of a cache: 122 pieces of
16 and 128 KiB, 8784 KiB together, in ordinary memory that both sides have registered, scattered. In each
round every side has both its processes started anew, writes and reads the block for a second each, and
compares what has arrived. The table has medians over the rounds, and of the ratios within each round.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests/support"), str(REPOSITORY / "benchmarks"), str(Path(__file__).resolve().parent)]

import record  # noqa: E402
from transfer_sides import SIDES, Memory, Work  # noqa: E402

WORK = Work.scattered([128 << 10, 16 << 10] * 61)
SECONDS = 1.0  # of one direction
LIMIT_S = 120
STORE_PORT = 23471
PACKAGES = {"Mooncake": "mooncake-transfer-engine-non-cuda", "NIXL": "nixl-cu12"}


# ---- in the processes


def tell(what):
    print("transfers:" + json.dumps(what), flush=True)


def own(side):
    """The process whose memory it is: what its bytes are it answers until its input ends."""
    memory = Memory(WORK.room, 1)
    tell(side.register(memory))
    for line in sys.stdin:
        if line == "sum\n":
            tell(memory.digest(WORK.theirs, WORK.sizes))


def ask(side):
    """The process that writes and reads; the parent passes lines between the two."""
    memory = Memory(WORK.room, 2)
    side.register(memory)
    move = side.connect(memory, json.loads(sys.stdin.readline()), WORK)
    memory.randomize(WORK.mine, WORK.sizes)
    expected = memory.digest(WORK.mine, WORK.sizes)
    move("write")
    tell("sum")
    if json.loads(sys.stdin.readline()) != expected:
        sys.exit("transfers: what was written has not arrived")
    memory.fill(0)
    move("read")
    if memory.digest(WORK.mine, WORK.sizes) != expected:
        sys.exit("transfers: what was read is not what was written")
    rates = {}
    for way in ("write", "read"):
        began, calls = time.perf_counter(), 0
        while time.perf_counter() < began + SECONDS:
            move(way)
            calls += 1
        rates[way] = calls * sum(WORK.sizes) / (time.perf_counter() - began) / 1e9
    tell(rates)


def worker(name, role, addresses):
    signal.alarm(LIMIT_S)
    side = SIDES[name](role, addresses, STORE_PORT)
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
    import machine
    from jobs.namespaces import Namespaces
    from two_hosts import Place, iperf3

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mooncake")
    parser.add_argument("--nixl")
    record.option(parser)
    chosen = parser.parse_args()
    if reason := machine.why_lacking("hosts"):
        sys.exit(f"transfers: network namespaces: {reason}")
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
    rows = []
    for name, least in (("iperf3", 0.85), ("Mooncake", 2), ("NIXL", 2)):
        if name in rounds[0]:
            for way in ("write", "read"):
                sides = ([found[side][way] * 1e3 for found in rounds] for side in ("memspan", name))
                rows.append(record.of_rounds(f"{way} of a cache block, next to {name}", "MB/s", *sides, target=1 / least))
    versions = {"memspan": version("memspan")}
    versions |= {name: python_version(pythons[name], package) for name, package in PACKAGES.items() if pythons[name]}
    command = f"python benchmarks/hosts/transfers.py --rounds {chosen.rounds} --mooncake PYTHON --nixl PYTHON"
    one = record.table("Mooncake, NIXL and iperf3, between hosts", command, "rival", versions, rows)
    for row in rows:
        print(f"{row.name}: {row.ours / 1e3:.3g} and {row.rival / 1e3:.3g} GB/s, ratio {row.ratio:.2f}")
    if chosen.record:
        record.add(chosen.record, "hosts-transfers", one)


def python_version(python, package):
    script = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", script], text=True, capture_output=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
