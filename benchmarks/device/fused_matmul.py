#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A product of matrices whose sum over all PEs ends on every one: fused, next to the product and then
the reduction, and to the product alone, in alternating rounds.

    python3 benchmarks/device/fused_matmul.py --build build [--rounds 7] [--ranks 2] [--size 2048] [--record FILE]

Each round runs examples/matmul_allreduce once for each way to fuse; within a run both forms alternate.
The table has medians over the rounds of the slowest rank's ratios.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record  # noqa: E402

WAYS = {"host calls": [], "a kernel of 1 block": ["-blocks", "1"], "a kernel of 2 blocks": ["-blocks", "2"]}
LINE = re.compile(r"^rank \d+:.*matmul ([\d.]+) ms.*reduction ([\d.]+) ms.*fused ([\d.]+) ms.*\(([\d.]+) of separate\)  PASS$")


def run(build, ranks, arguments):
    """The ranks' (product, reduction, fused) in ms, and fused / separate."""
    done = subprocess.run(
        [build / "bin/oshrun", "-n", str(ranks), build / "bin/matmul_allreduce", *arguments],
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found = [tuple(map(float, match.groups())) for line in done.stdout.splitlines() if (match := LINE.match(line))]
    if len(found) != ranks:
        raise RuntimeError(f"matmul_allreduce said:\n{done.stdout}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--size", type=int, default=2048)
    record.option(parser)
    chosen, busy, kept = parser.parse_args(), record.busy_cores(), []
    print(f"{chosen.ranks} ranks, M = K = N = {chosen.size}, {chosen.rounds} rounds")
    print(f"{'type':6} {'fused by':22} {'product ms':>10} {'fused ms':>9} {'fused / product':>16} {'separate / fused':>17}")
    for kind in ("fp16", "float"):
        measured = {way: [] for way in WAYS}
        for _ in range(chosen.rounds):
            for way, options in WAYS.items():
                shape = [word for name in "MKN" for word in (f"-{name}", str(chosen.size))]
                ranks = run(chosen.build.resolve(), chosen.ranks, [*shape, "-type", kind, "-repeat", "5", *options])
                product = max(rank[0] for rank in ranks)
                fused = max(rank[2] for rank in ranks)
                measured[way].append((product, fused, fused / product, 1 / max(rank[3] for rank in ranks)))
        for way, rows in measured.items():
            product, fused, to_product, to_separate = (statistics.median(column) for column in zip(*rows))
            us = [[value * 1e3 for value in column] for column in list(zip(*rows))[:2]]
            kept.append(record.of_rounds(f"{kind}, next to the product", "us", us[1], us[0], size=way.removeprefix("a kernel of "), target=1.03))
            ratios = record.of_ratios([1 / row[3] for row in rows])
            kept.append(record.Row(f"{kind}, next to product, then reduction", "us", kept[-1].size, ours=fused * 1e3, **ratios, target=1, rounds=chosen.rounds))
            print(f"{kind:6} {way:22} {product:10.1f} {fused:9.1f} {to_product:16.3f} {to_separate:17.2f}")
    if chosen.record:
        command = f"python3 benchmarks/device/fused_matmul.py --build build --rounds {chosen.rounds}"
        versions = {"memspan": (record.ROOT / "VERSION").read_text().strip()}
        record.add(chosen.record, "fused-matmul", record.table("the product without its reduction", command, "unfused", versions, kept, busy=busy))


if __name__ == "__main__":
    main()
