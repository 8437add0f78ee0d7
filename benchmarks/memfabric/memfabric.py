#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures MemFabric's calls next to the bare ways of doing the same and to rivals; prints one table.

    benchmarks/install_rivals.sh build/rivals
    python3 benchmarks/memfabric/memfabric.py --build build [--rounds 7] [--quick] [--record FILE]

A round runs our program, which alternates with the bare way itself, and every rival; who goes first
changes from round to round. The exit code is 0 when everything of ours ran, 1 when it did not (with
--strict: or a target was missed), and 2 when there is nothing to run.
"""

import argparse
import shlex
import signal
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))

import jobs
import table
import workloads
from report import record
from rivals import Rivals

REPOSITORY = HERE.parent.parent
GROUPS = ("bm", "trans", "mapped", "adopted", "register", "start", "churn")


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, help="memspan's build tree (default: build)")
    parser.add_argument("--rounds", type=int, help="default 7, or 3 with --quick")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds")
    parser.add_argument("--repetitions", type=int, help="of each figure in a round (default 9)")
    parser.add_argument("--groups", default=",".join(GROUPS), help="of memfabric_bench")
    parser.add_argument("--rivals", type=Path, help="Mooncake's folder (default: BUILD/rivals)")
    parser.add_argument("--no-rivals", action="store_true", help="only the bare ways")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one child")
    record.option(parser)
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    chosen = parser.parse_args(arguments)
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 7)
    chosen.build = (chosen.build or REPOSITORY / "build").resolve()
    chosen.rivals = (chosen.rivals or chosen.build / "rivals").resolve()
    chosen.groups = chosen.groups.split(",")
    if unknown := set(chosen.groups) - set(GROUPS):
        parser.error(f"unknown groups: {', '.join(sorted(unknown))}; allowed are {', '.join(GROUPS)}")
    return chosen


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Measurement:
    """All rounds: what each side said in each."""

    def __init__(self, chosen: argparse.Namespace):
        self.chosen = chosen
        self.program = chosen.build / "bin/memfabric_bench"
        self.rivals = Rivals(chosen.rivals / "bin/python", chosen.timeout)
        self.ours: list[workloads.Figures] = []
        self.others: list[dict[str, workloads.Figures]] = []
        self.failures: list[str] = []

    def round(self, number: int) -> None:
        steps = [self.run_ours, self.run_rivals]
        for step in steps if number % 2 == 0 else reversed(steps):
            step(number)

    def run_ours(self, number: int) -> None:
        figures: workloads.Figures = {}
        for group in self.chosen.groups:
            if group == "churn" and number > 0 and not self.chosen.quick:
                continue  # it says nothing about time; once is enough
            done = jobs.run([str(self.program), *self.arguments(), group], {}, self.chosen.timeout)
            figures |= workloads.parse(done.output)
            if done.failure:
                said = [line for line in done.output.splitlines() if "ERROR" in line or ": " in line]
                self.failures.append(f"group {group}: {done.failure} {' / '.join(said[-2:])}"[:300])
                say(f"  {self.failures[-1]}")
        self.ours.append(figures)

    def arguments(self) -> list[str]:
        if self.chosen.quick:
            return ["-r", "5", "-t", "1", "-m", "40", "-c", "1000"]
        return ["-r", str(self.chosen.repetitions)] if self.chosen.repetitions else []

    def run_rivals(self, _: int) -> None:
        self.others.append({} if self.chosen.no_rivals else self.rivals.round())

    def result(self, row: workloads.Row) -> workloads.Result:
        samples = []
        for ours, others in zip(self.ours, self.others):
            sizes = {row.size, 1000} if row.figure.startswith("churn") else {row.size}
            found = [ours[row.figure, s] for s in sizes if (row.figure, s) in ours]
            rivals = {
                side: figures[row.rivals, row.size]
                for side, figures in others.items()
                if (row.rivals, row.size) in figures
            }
            bare = ours.get((f"bare_{row.figure}", row.size))
            samples.append(workloads.Sample(found[0] if found else None, bare, rivals))
        return workloads.Result(row, samples)


def command_line(chosen: argparse.Namespace) -> str:
    """As it would be typed again: without the paths of this machine."""
    words = ["python3", "benchmarks/memfabric/memfabric.py", "--build", chosen.build.name]
    words += ["--rounds", str(chosen.rounds)]
    words += ["--quick"] if chosen.quick else []
    words += ["--repetitions", str(chosen.repetitions)] if chosen.repetitions else []
    words += ["--no-rivals"] if chosen.no_rivals else []
    if tuple(chosen.groups) != GROUPS:
        words += ["--groups", ",".join(chosen.groups)]
    return shlex.join(words)


TABLES = {  # title, rival
    "memfabric": ("plain copies (memcpy, process_vm_writev)", "bare copy"),
    "memfabric-mooncake": ("Mooncake over TCP, from C", "Mooncake"),
    "memfabric-limits": ("MemFabric's limits", None),
}


def add_tables(chosen: argparse.Namespace, results: list[workloads.Result], remarks: list[str], busy: float) -> None:
    tables = {identity: found for identity, found in table.record_tables(results).items() if found}
    for identity, found in tables.items():
        title, rival = TABLES[identity]
        versions = {"memspan": jobs.memspan_version()}
        if rival == "Mooncake":
            versions["Mooncake"] = jobs.version_of(chosen.rivals / "bin/python", "mooncake-transfer-engine-non-cuda")
        record.add(chosen.record, identity, record.table(title, command_line(chosen), rival, versions, found, remarks, busy))


def finish(chosen: argparse.Namespace, measured: Measurement, busy: float) -> int:
    results = [measured.result(row) for row in workloads.rows()]
    results = [result for result in results if result.median_of("ours") is not None]
    remarks = [f"memspan: {failure}" for failure in measured.failures]
    remarks += [f"{side}: {said}" for side, all_of in measured.rivals.failures.items() for said in all_of]
    print(table.text(results))
    for remark in remarks:
        print(remark)
    if chosen.record:
        add_tables(chosen, results, remarks, busy)
    missed = any(result.missed() for result in results)
    return 1 if measured.failures or not results or (chosen.strict and missed) else 0


def main(arguments: list[str]) -> int:
    chosen = options(arguments)
    # Ended from outside, it still takes its children along.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    measured = Measurement(chosen)
    if not measured.program.exists():
        say(f"{measured.program} does not exist")
        return 2
    busy = record.busy_cores()
    for number in range(chosen.rounds):
        say(f"round {number + 1} of {chosen.rounds}")
        measured.round(number)
    return finish(chosen, measured, busy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
