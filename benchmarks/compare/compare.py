#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares memspan with Debian's Open MPI OSHMEM on this machine and prints one table.

    python3 benchmarks/compare/compare.py --build build [--rounds 7] [--quick] [--record FILE]

The same programs are compiled against both. A round runs every job on both sides, one right after
the other, and the side that goes first changes from round to round. The exit code is 0 when
everything ran, 1 when a run of memspan failed (with --strict: or a target was missed), and 2 when
there is nothing to run.
"""

import argparse
import shlex
import signal
import statistics
import sys
import tempfile
from pathlib import Path

import jobs
import report
import rows
from report import record

REPOSITORY = jobs.HERE.parent.parent


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, help="memspan's build tree (default: build)")
    parser.add_argument("--prefix", type=Path, help="an installed memspan, instead of --build")
    parser.add_argument("--rounds", type=int, help="default 7, or 3 with --quick")
    parser.add_argument("--quick", action="store_true", help="short repetitions, few rounds")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of one child")
    parser.add_argument("--work", type=Path, help="where the programs are built (default: /tmp)")
    record.option(parser)
    parser.add_argument("--strict", action="store_true", help="fail when a target is missed")
    parser.add_argument(
        "--self-test",
        action="store_true",
        help="compare OSHMEM with itself: the ratios must be about 1",
    )
    chosen = parser.parse_args(arguments)
    chosen.rounds = chosen.rounds or (3 if chosen.quick else 7)
    chosen.build = (chosen.build or REPOSITORY / "build").resolve()
    if chosen.self_test and chosen.record:
        parser.error("--self-test has no record")
    return chosen


def sides(chosen: argparse.Namespace, work: Path) -> tuple[jobs.Side, jobs.Side | None]:
    """Both, built; the rival is None where it is not installed, and the table says so."""
    if chosen.self_test:
        ours, rival = jobs.oshmem(), jobs.oshmem()
        ours.name = "OSHMEM-again"
    else:
        ours = jobs.memspan(chosen.build, chosen.prefix and chosen.prefix.resolve())
        try:
            rival = jobs.oshmem()
        except jobs.Unusable as reason:
            say(str(reason))
            rival = None
    for side in filter(None, (ours, rival)):
        side.build(work)
    return ours, rival


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def run_job(side: jobs.Side, job: rows.Job, timeout: float) -> tuple[rows.Figures, str | None]:
    """The figures of the last launch, and the median wall time of all."""
    seconds = []
    for _ in range(job.repeats):
        done = side.start(job.processes, job.program, *job.arguments, heap=job.heap, timeout=timeout)
        if done.failure:
            return rows.parse(done.output), explain(done)
        seconds.append(done.seconds)
    return rows.parse(done.output) | {("wall", 0): (statistics.median(seconds) * 1e6, "us")}, None


def explain(done: jobs.Outcome) -> str | None:
    """A failure with its reason: the program's own, or the last word before the end."""
    if not done.failure:
        return None
    said = [line.strip() for line in done.output.splitlines()]
    errors = [line.lstrip("# ") for line in said if line.startswith("# ERROR")]
    signals = [line for line in said if "signal" in line.lower()]
    reason = (errors or signals or [""])[0][:160]
    return f"{done.failure} ({reason})" if reason else done.failure


def run_limits(program: Path | None, timeout: float) -> rows.Figures:
    if not program:
        return {}
    done = jobs.run([str(program), "-r", "5", "yield", "exec"], {}, timeout)
    return rows.parse(done.output)


class Comparison:
    """All rounds: figures by side and job, one entry a round."""

    def __init__(self, ours: jobs.Side, rival: jobs.Side | None, plan: list[rows.Job]):
        self.ours, self.rival, self.plan = ours, rival, plan
        self.figures = {}  # (side, job) -> list of Figures
        self.failures = {}  # (job) -> side -> list of failures
        self.limits = []

    def round(self, number: int, limits: Path | None, timeout: float) -> None:
        order = [side for side in (self.ours, self.rival) if side]
        if number % 2:
            order.reverse()
        for job in self.plan:
            for side in order:
                self.one(side, job, timeout)
        self.limits.append(run_limits(limits, timeout))

    def one(self, side: jobs.Side, job: rows.Job, timeout: float) -> None:
        figures, failure = run_job(side, job, timeout)
        self.figures.setdefault((side.name, job.name), []).append(figures)
        if failure:
            say(f"  {side.name}, job {job.name}: {failure}")
            self.failures.setdefault(job.name, {}).setdefault(side.name, []).append(failure)

    def result(self, row: rows.Row) -> rows.Result:
        processes = next(job.processes for job in self.plan if job.name == row.job)
        rounds = range(len(self.limits))
        unit = next((u for i in rounds if (u := self.unit(row, i))), "us")
        samples = [self.sample(row, i) for i in rounds]
        return rows.Result(row, unit, samples, processes, self.failures.get(row.job, {}))

    def of(self, side: jobs.Side | None, row: rows.Row, i: int) -> tuple[float, str] | None:
        if not side:
            return None
        return self.figures[side.name, row.job][i].get((row.figure, row.size))

    def unit(self, row: rows.Row, i: int) -> str | None:
        found = self.of(self.ours, row, i) or self.of(self.rival, row, i)
        return found[1] if found else None

    def sample(self, row: rows.Row, i: int) -> rows.Sample:
        values = [found and found[0] for found in (self.of(s, row, i) for s in self.both())]
        return rows.Sample(*values, self.bare(row, i))

    def both(self) -> tuple[jobs.Side, jobs.Side | None]:
        return self.ours, self.rival

    def bare(self, row: rows.Row, i: int) -> float | None:
        """The bound: measured within our own run if it is there, else the machine's limit. The best
        of the ways to copy, where there are several."""
        own = self.figures[self.ours.name, row.job][i]
        ways = [row.bare + way for way in rows.WAYS]
        for figures in (own, self.limits[i]):
            for size in (row.size, 8, 0):
                found = [figures[way, size][0] for way in ways if (way, size) in figures]
                if found:
                    return max(found) * row.bare_factor
        return None


def command_line(chosen: argparse.Namespace) -> str:
    """As it would be typed again: without the paths of this machine."""
    words = ["python3", "benchmarks/compare/compare.py"]
    words += ["--prefix", "install"] if chosen.prefix else ["--build", chosen.build.name]
    words += ["--rounds", str(chosen.rounds)]
    words += ["--quick"] if chosen.quick else []
    words += ["--self-test"] if chosen.self_test else []
    return shlex.join(words)


def add_tables(chosen: argparse.Namespace, comparison: Comparison, results: list[rows.Result], busy: float) -> None:
    """Next to OSHMEM, and next to the bare machine where there is a target for that."""
    compiler = jobs.run([jobs.c_compiler(), "-dumpfullversion"], {}, 20).output.strip()
    versions = {"memspan": jobs.memspan_version(), "OSHMEM": comparison.rival.version if comparison.rival else "", "gcc": compiler}
    versions = {name: version for name, version in versions.items() if version}
    command, remarks = command_line(chosen), report.remarks(results).splitlines()
    found = [report.row_of(result) for result in results]
    if comparison.rival:
        one = record.table("OSHMEM of Open MPI", command, "OSHMEM", versions, found, [line.removeprefix("- ") for line in remarks], busy)
        record.add(chosen.record, "oshmem", one)
    bare = [report.row_of(result, side="bare") for result in results if result.row.bare_target is not None]
    versions.pop("OSHMEM", None)
    record.add(chosen.record, "limits", record.table("the bare machine", command, "bare machine", versions, bare, busy=busy))


def finish(chosen: argparse.Namespace, comparison: Comparison, busy: float) -> int:
    results = [comparison.result(row) for row in rows.rows(jobs.cores())]
    rival = comparison.rival.name if comparison.rival else "OSHMEM"
    print(report.text_table(report.lines_of(results, comparison.ours.name, rival)))
    if remarks := report.remarks(results):
        print(f"\n{remarks}")
    if chosen.record:
        add_tables(chosen, comparison, results, busy)
    failed = any(comparison.ours.name in f for f in comparison.failures.values())
    missed = any(result.verdict() != "met" for result in results)
    return 1 if failed or (chosen.strict and missed) else 0


def main(arguments: list[str]) -> int:
    chosen = options(arguments)
    # Ended from outside, it still takes its children along and removes what it built.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="memspan-compare-") as temporary:
        work = chosen.work or Path(temporary)
        try:
            ours, rival = sides(chosen, work)
        except jobs.Unusable as reason:
            say(str(reason))
            return 2
        limits = jobs.build_limits(work)
        busy = record.busy_cores()
        comparison = Comparison(ours, rival, rows.jobs(chosen.quick))
        for number in range(chosen.rounds):
            say(f"round {number + 1} of {chosen.rounds}")
            comparison.round(number, limits, chosen.timeout)
        return finish(chosen, comparison, busy)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
