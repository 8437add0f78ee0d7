#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs that poll, and such as only look as if they did, with two builds of memspan.

    python3 benchmarks/polling/polling.py --before OTHER/build --after build [-n 4] [--rounds 9]

The same programs, those of --after, run with either build's library and launcher, one right after the
other; who goes first changes from round to round. What is printed is the median time of each, and the
median and quartiles of time after over time before, within a round. --cores binds all to so many cores.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

# The program, its arguments.
ROWS = [
    *[("exchange", "30000", how) for how in ("test", "fetch", "g", "signal")],
    *[("histogram", "10000000", how) for how in ("scan", "count", "constant")],
]


def options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--before", type=Path, required=True, help="the earlier build tree")
    parser.add_argument("--after", type=Path, required=True, help="the later build tree")
    parser.add_argument("-n", type=int, default=4, help="PEs")
    parser.add_argument("--cores", type=int, help="that the job may use; all if not given")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one job")
    return parser.parse_args()


def seconds(build, programs, row, chosen):
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build.resolve() / "lib")}
    program, *arguments = row
    command = [build.resolve() / "bin/oshrun", "-n", str(chosen.n), programs / f"polling_{program}", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=chosen.timeout, check=False)
    found = re.search(r": ([0-9.]+) s$", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return float(found.group(1))


def main():
    chosen = options()
    if chosen.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: chosen.cores])
    programs = chosen.after.resolve() / "bin"
    times = {row: ([], []) for row in ROWS}
    for number in range(chosen.rounds):
        for row, (before, after) in times.items():
            sides = [(chosen.before, before), (chosen.after, after)]
            for build, into in sides if number % 2 == 0 else reversed(sides):
                into.append(seconds(build, programs, row, chosen))
    print(f"{chosen.n} PEs on {len(os.sched_getaffinity(0))} cores, {chosen.rounds} rounds")
    for row, (before, after) in times.items():
        ratios = [late / early for early, late in zip(before, after)]
        low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        print(f"  {row[0] + ' ' + row[2]:20} {statistics.median(before):9.4f} s {statistics.median(after):9.4f} s"
              f"  {statistics.median(ratios):6.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
