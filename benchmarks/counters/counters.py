#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What MEMSPAN_COUNTERS=1 costs a call of 8 bytes, next to the same call without.

  counters.py [--build build] [--rounds 21] [--check]

Starts the same program in turns with counters and without, and prints for each kind of call the medians in
nanoseconds, their ratio and their difference, and the instructions of a call, which valgrind counts where it is
there. --check fails when a put of 8 bytes costs more than 2 ns with counters than without.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

MOST_NS = 2.0
CHECKED = ("p", "put")


def run(command, counters):
    variables = {**os.environ, "MEMSPAN_COUNTERS": counters}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=variables)
    if done.returncode != 0:
        sys.exit(f"counters: {' '.join(map(str, command))} ended with {done.returncode}:\n{done.stderr}")
    return done


def nanoseconds(program, counters):
    out = run([program, "100000", "20"], counters).stdout
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


def instructions(program, counters):
    """Of a call, on average over the kinds: what twice as many calls need more."""
    def all_of(calls):
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, str(calls), "1"]
        return int(re.search(r"Collected : (\d+)", run(command, counters).stderr).group(1))

    return (all_of(4000) - all_of(2000)) / 2000 / 5


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build", type=pathlib.Path)
    parser.add_argument("--rounds", default=21, type=int)
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    program = arguments.build / "benchmarks" / "counters" / "counters_put_rate"
    if not program.exists():
        sys.exit(f"counters: {program} is missing; build with -DMEMSPAN_BUILD_BENCHMARKS=ON")
    seen = {"0": [], "1": []}
    for turn in range(2 * arguments.rounds):
        counters = str((turn + turn // 2) % 2)  # 0 1 1 0 0 1 1 0: no side is always the second
        seen[counters].append(nanoseconds(program, counters))
    print(f"{'call':12} {'off ns':>8} {'on ns':>8} {'ratio':>7} {'more ns':>8}")
    failed = []
    for name in seen["0"][0]:
        off, on = (statistics.median(one[name] for one in seen[side]) for side in ("0", "1"))
        print(f"{name:12} {off:8.2f} {on:8.2f} {on / off:7.2f} {on - off:8.2f}")
        if name in CHECKED and on - off > MOST_NS:
            failed.append(name)
    if shutil.which("valgrind"):
        off, on = (instructions(program, side) for side in ("0", "1"))
        print(f"instructions of a call, with the loop around it: {off:.1f} off, {on:.1f} on")
    if arguments.check and failed:
        sys.exit(f"counters: more than {MOST_NS} ns: {', '.join(failed)}")


if __name__ == "__main__":
    main()
