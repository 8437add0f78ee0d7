#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two builds of memspan with each other, row by row of the other benchmarks.

    python3 benchmarks/side_by_side.py --before OTHER/build --after build [--rounds 9]
        [--python-before OTHER/build-py --python-after build-py]

A round runs each part of the benchmarks with both builds, one right after the other; who goes first
changes from round to round. A ratio is time after over time before, within a round, so that below 1
the later build is faster; the result is the median of the rounds' ratios. Rows whose median and lower
quartile are above --most are listed as slower. The exit code is 1 when there are some or something failed.

The parts: `compare` (OpenSHMEM), `memfabric`, and `python` (torch.distributed; needs both extensions and
an interpreter with PyTorch).
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
for folder in ("compare", "memfabric"):
    sys.path.insert(0, str(HERE / folder))

import compare
import jobs
import rows
import workloads

PARTS = ("compare", "memfabric", "python")
GROUPS = ("bm", "trans", "mapped", "register", "start")
FIRST_PORT = 29671


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--before", type=Path, required=True, help="the earlier build tree")
    parser.add_argument("--after", type=Path, required=True, help="the later build tree")
    parser.add_argument("--python-before", type=Path, help="a build tree with the extension")
    parser.add_argument("--python-after", type=Path, help="the same of the later build")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--most", type=float, default=1.03, help="the ratio that still counts as level")
    parser.add_argument("--parts", default="compare,memfabric", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="short repetitions")
    parser.add_argument("--timeout", type=float, default=300, help="seconds of one child")
    chosen = parser.parse_args(arguments)
    chosen.parts = chosen.parts.split(",")
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"unknown parts: {', '.join(sorted(unknown))}; allowed are {', '.join(PARTS)}")
    if "python" in chosen.parts and not (chosen.python_before and chosen.python_after):
        parser.error("the part python needs --python-before and --python-after")
    return chosen


def say(line):
    print(line, file=sys.stderr, flush=True)


class Compare:
    """The jobs of benchmarks/compare; bandwidths count as times."""

    def __init__(self, build, chosen, work):
        self.side = jobs.memspan(build.resolve(), None)
        self.side.name = build.resolve().as_posix().replace("/", "_")
        self.side.build(work)
        self.chosen = chosen

    def round(self):
        figures, failures = {}, []
        for job in rows.jobs(self.chosen.quick):
            found, failure = compare.run_job(self.side, job, self.chosen.timeout)
            failures += [f"{job.name}: {failure}"] if failure else []
            for (name, size), (value, unit) in found.items():
                if not name.startswith("bare") and value > 0:
                    figures[f"{job.name} {name}", size] = 1 / value if unit in ("MB/s", "Mop/s") else value
        return figures, failures


class Memfabric:
    def __init__(self, build, chosen, _):
        self.program, self.chosen = build.resolve() / "bin/memfabric_bench", chosen

    def round(self):
        figures, failures = {}, []
        arguments = ["-r", "5", "-t", "1", "-m", "40"] if self.chosen.quick else ["-r", "5"]
        for group in GROUPS:
            done = jobs.run([str(self.program), *arguments, group], {}, self.chosen.timeout)
            failures += [f"{group}: {done.failure}"] if done.failure else []
            found = workloads.parse(done.output)
            figures |= {key: value for key, value in found.items() if not key[0].startswith("bare") and value > 0}
        return figures, failures


class Python:
    """The workers of benchmarks/python/collectives.py, one round of theirs in one of ours."""

    ports = iter(range(FIRST_PORT, FIRST_PORT + 2000))

    def __init__(self, build, chosen, _):
        self.build, self.chosen = build.resolve(), chosen

    def round(self):
        figures, failures = {}, []
        for world in (2, 4):
            done = self.run(world, next(self.ports))
            failures += [f"{world} processes: {done.failure}"] if done.failure else []
            for line in done.output.splitlines():
                words = line.split("\t")
                if words[0] == "row":
                    times = json.loads(words[3])["memspan"]
                    figures[f"{world} processes, {words[1]}", int(words[2])] = statistics.median(times)
        return figures, failures

    def run(self, world, port):
        script = (
            f"import sys; sys.path.insert(0, {str(HERE / 'python')!r}); import collectives\n"
            f"for line in collectives.run('collectives', {world}, 3, {port}): print(*line, sep='\\t')"
        )
        environment = {"PYTHONPATH": f"{self.build / 'python'}:{os.environ.get('PYTHONPATH', '')}"}
        return jobs.run([sys.executable, "-c", script], environment, 1000)


def measure(part, chosen, work):
    """The ratios of each row, by round; and what failed."""
    make = {"compare": Compare, "memfabric": Memfabric, "python": Python}[part]
    of_python = part == "python"
    before = make(chosen.python_before if of_python else chosen.before, chosen, work)
    after = make(chosen.python_after if of_python else chosen.after, chosen, work)
    ratios, failed = {}, []
    for number in range(chosen.rounds):
        say(f"{part}: round {number + 1} of {chosen.rounds}")
        found = {}
        for side in (before, after) if number % 2 == 0 else (after, before):
            found[side], failures = side.round()
            failed += [f"{'after' if side is after else 'before'}, {failure}" for failure in failures]
        for key in found[before].keys() & found[after].keys():
            ratios.setdefault(key, []).append(found[after][key] / found[before][key])
    return ratios, failed


def quartiles(values):
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def show(part, ratios, most):
    """One line a row; returns how many are slower."""
    slower = 0
    print(f"\n{part}: time after / time before, median (quartiles)")
    for (name, size), values in sorted(ratios.items()):
        middle, (low, high) = statistics.median(values), quartiles(values)
        is_slower = middle > most and low > most
        slower += is_slower
        print(f"  {name:40} {size:>10}  {middle:.3f} ({low:.3f} to {high:.3f}){'  SLOWER' if is_slower else ''}")
    middles = [statistics.median(values) for values in ratios.values()]
    if middles:
        print(f"  {len(middles)} rows, mean {statistics.geometric_mean(middles):.3f}, {slower} slower")
    return slower


def main(arguments):
    chosen = options(arguments)
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="memspan-side-by-side-") as work:
        for part in chosen.parts:
            try:
                ratios, failed = measure(part, chosen, Path(work))
            except jobs.Unusable as reason:
                say(str(reason))
                return 1
            for failure in failed:
                print(f"{part}: {failure}")
            wrong += show(part, ratios, chosen.most) + len(failed) + (not ratios)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
