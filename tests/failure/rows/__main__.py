# SPDX-License-Identifier: Apache-2.0
"""Runs rows and writes a line of JSON for each; see run.sh."""

import argparse
import json
import os
import random
import sys

from rows import (
    churn,
    clock,
    deadlines,
    death,
    finalize,
    leftovers,
    shortage,
    starting,
    store_lost,
    store_units,
    user_code,
)
from rows.sheet import Plan, run

MODULES = (
    death,
    store_lost,
    leftovers,
    shortage,
    starting,
    store_units,
    clock,
    user_code,
    finalize,
    churn,
    deadlines,
)
ROWS = {row.number: row for module in MODULES for row in module.ROWS}


def arguments():
    parser = argparse.ArgumentParser(prog="run.sh", description="Runs the promised rows.")
    parser.add_argument("--long", action="store_true", help="1,000 rounds a row, a soak of 300 s")
    parser.add_argument("--quick", action="store_true", help="10 rounds a row, a soak of 5 s")
    parser.add_argument("--rounds", type=int, help="rounds a row (50)")
    parser.add_argument("--soak", type=float, help="seconds of row 24 (20; 300 when named)")
    parser.add_argument("--seed", type=int, help="of every random choice (a fresh one)")
    parser.add_argument("--build", required=True, help="the build folder")
    parser.add_argument("--out", help="where the results go (reliability.jsonl in the build folder)")
    parser.add_argument("rows", nargs="*", metavar="row", help=", ".join(ROWS))
    given = parser.parse_args()
    unknown = [number for number in given.rows if number not in ROWS]
    if unknown:
        parser.error(f"there is no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return given


def plan_of(given):
    rounds, soak_s = (1000, 300) if given.long else (10, 5) if given.quick else (50, 20)
    if "24" in given.rows and not given.quick:
        soak_s = 300
    return Plan(
        rounds=given.rounds or rounds,
        soak_s=given.soak or soak_s,
        seed=random.getrandbits(32) if given.seed is None else given.seed,
        build=os.path.abspath(given.build),
    )


def line_of(result, seconds):
    verdict = "skip" if result["skipped"] else "FAIL" if result["failures"] else "pass"
    line = f"{verdict}  row {result['row']:>2}  {result['title']:<52} n {result['n']:>4}"
    if result["p50_ms"] is not None:
        times = "  ".join(f"{name} {result[name + '_ms']:.1f}" for name in ("p50", "p99", "max"))
        line += f"  {times} of {result['bound_ms']:g} ms"
    if result["failures"]:
        line += f"  {result['failures']} failures"
    if result["skipped"]:
        line += f"  skipped: {result['skipped']}"
    return f"{line}  ({seconds:.0f} s)"


def main():
    given = arguments()
    plan = plan_of(given)
    numbers = [number for number in ROWS if not given.rows or number in given.rows]
    path = given.out or os.path.join(plan.build, "reliability.jsonl")
    print(f"seed {plan.seed}, {plan.rounds} rounds, soak {plan.soak_s:g} s", flush=True)
    failures = 0
    with open(path, "w", encoding="utf-8") as out:
        for number in sorted(numbers, key=int):
            sheet, seconds = run(ROWS[number], plan)
            result = sheet.result()
            failures += result["failures"]
            out.write(json.dumps(result) + "\n")
            out.flush()
            print(line_of(result, seconds), flush=True)
            for note in sheet.notes:
                print(f"      {note}", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
