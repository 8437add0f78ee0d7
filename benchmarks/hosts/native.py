#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What one-sided access through UCX gives large puts and gets between two simulated hosts of this machine, in
alternating rounds next to the same by messages. It needs a build with ``-DMEMSPAN_NATIVE_RMA=ON``.

    python3 benchmarks/hosts/native.py --build build [--rounds 7] [--quick] [--record FILE]

UCX's shared memory stands for a network with one-sided access: ``libtest_ucx_registrations.so`` of the tests
makes the heap of it. So the figures say what the protocol costs beside a copy, not what a network does. The
table has medians over the rounds.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

import rates  # noqa: E402
import record  # noqa: E402

LIMIT_S = 300
UCX = {"MEMSPAN_CARRIER": "ucx", "MEMSPAN_TRUSTED_FABRIC": "1"}
SHARED = {**UCX, "UCX_TLS": "posix,tcp", "UCX_POSIX_ERROR_HANDLING": "y"}
SIDES = {
    "one-sided": SHARED,
    "messages, UCX shared memory": {**SHARED, "MEMSPAN_NATIVE_RMA": "0"},
    "messages, UCX TCP": {**UCX, "UCX_TLS": "tcp"},
    "messages, Unix sockets": {"MEMSPAN_CARRIER": "unix"},
    "messages, TCP sockets": {"MEMSPAN_CARRIER": "tcp"},
}


def run(build, side, quick):
    """Of one run: what `hosts_rates` says, by name and bytes."""
    environment = {**os.environ, **SIDES[side], "SHMEM_SYMMETRIC_SIZE": "160M"}
    program = [str(build / "bin/hosts_rates"), "waits", *(["quick"] if quick else [])]
    if side == "one-sided":
        program = ["env", f"LD_PRELOAD={build.resolve()}/tests/libtest_ucx_registrations.so", *program]
    done = subprocess.run([str(build / "bin/oshrun"), "-n", "2", "--simulate-hosts", "2", *program], env=environment,
                          text=True, capture_output=True, timeout=LIMIT_S, check=False)
    if done.returncode != 0:
        sys.exit(f"native.py: {side}: {done.stderr}")
    rows = {}
    for line in done.stdout.splitlines():
        name, size, value, unit = line.split()
        rows[name, int(size), unit] = float(value)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    record.option(parser)
    options, busy = parser.parse_args(), record.busy_cores()
    found = {}
    for _ in range(options.rounds):
        for side in SIDES:
            for row, value in run(options.build, side, options.quick).items():
                found.setdefault(row, {}).setdefault(side, []).append(value)
    rows = []
    for (name, size, unit), sides in found.items():
        print(f"{name}, {size} bytes, {unit}:", *(f"{side} {statistics.median(values):.3g}" for side, values in sides.items()), sep="  ")
        rows.append(compared(name, size, unit, sides, options.rounds))
    if options.record:
        command = f"python3 benchmarks/hosts/native.py --build build --rounds {options.rounds}" + " --quick" * options.quick
        versions = {"memspan": (record.ROOT / "VERSION").read_text().strip()}
        record.add(options.record, "one-sided", record.table("messages, for UCX's one-sided access", command, "fastest by messages", versions, rows, busy=busy))


def compared(name, size, unit, sides, rounds):
    """One-sided next to the best by messages of each round."""
    ours, *others = (values + [None] * (rounds - len(values)) for values in sides.values())
    best = max if unit == "GB/s" else min
    rival = [best(value for value in found if value is not None) for found in zip(*others)]
    name, text = rates.name_and_size(name, size, unit)
    factor = 1e3 if text else 1
    return record.of_rounds(name, "MB/s" if text else "us", [value and value * factor for value in ours], [value * factor for value in rival], size=text)


if __name__ == "__main__":
    main()
