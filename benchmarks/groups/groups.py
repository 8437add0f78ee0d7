#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memspan's groups and OpenSHMEM next to each MPI in the same processes; prints a table against the fastest MPI of each row.

    benchmarks/install_rivals.sh build/rivals
    python3 benchmarks/groups/groups.py --build build [--only allreduce --sizes 16384,262144] [--record FILE]

Each MPI's mpiexec starts processes in which `groups_bench` (main.cc) alternates between memspan and that MPI. The MPIs
take turns by operation. An MPI that is missing or fails is named below the table with the reason, and the others are measured;
so is a row that does not end in time (benchmarks/bounded.py). Each number of processes has its table. The exit code is
0 when memspan ran everything, 1 when something did not run (with --strict: or a row was missed), and 2 when there is nothing
to run. A row that only the MPI did not end changes no exit code.
"""

import argparse
import math
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compare")]

import bounded
import jobs
import mpi
import record
import report
import rows

OPERATIONS = {  # next to MPI_Barrier, MPI_Allreduce, ..., MPI_Put and MPI_Get with MPI_Win_flush
    "barrier": "group barrier",
    "allreduce": "group all-reduce",
    "broadcast": "group broadcast",
    "alltoall": "group all-to-all",
    "allgather": "group all-gather",
    "reduce_scatter": "group reduce-scatter",
    "shmem_barrier": "barrier_all",
    "shmem_broadcast": "broadcastmem",
    "shmem_alltoall": "alltoallmem",
    "put": "put",
    "get": "get",
}
KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB)
PROCESSES = (2, 4)
MPIS = tuple(os.path.relpath(REPOSITORY / "build/rivals" / name) for name in ("", "openmpi", "mpich"))  # of install_rivals.sh
HEADINGS = ["operation", "size", "memspan", "fastest MPI", "memspan / fastest MPI"]


def list_of(convert):
    return lambda text: tuple(convert(word) for word in text.split(","))


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build", help="memspan's build tree (default: build)")
    parser.add_argument("--mpi", type=list_of(str), default=MPIS, help=f"folders, or as mpicxx.mpich (default: {','.join(MPIS)})")
    parser.add_argument("--processes", type=list_of(int), default=PROCESSES, help="default 2,4")
    parser.add_argument("--only", type=list_of(str), help=f"of {', '.join(OPERATIONS)}")
    parser.add_argument("--sizes", type=list_of(int), default=SIZES, help="bytes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--least", type=float, default=3, help="milliseconds of a batch of calls")
    parser.add_argument("--budget", type=float, default=10, help="seconds that a row aims at, by fewer rounds")
    parser.add_argument("--side", choices=("memspan", "mpi"), help="time this one alone")
    parser.add_argument("--before", default="", help="words before the program, as 'valgrind --tool=callgrind'")
    parser.add_argument("--timeout", type=float, default=60, help="seconds of a row")
    record.option(parser)
    parser.add_argument("--strict", action="store_true", help="fail when a row is missed")
    chosen = parser.parse_args(arguments)
    chosen.build = chosen.build.resolve()
    if unknown := set(chosen.only or ()) - set(OPERATIONS):
        parser.error(f"unknown operations: {', '.join(sorted(unknown))}; there are {', '.join(OPERATIONS)}")
    return chosen


def say(line):
    print(line, file=sys.stderr, flush=True)


def find_all(chosen):
    """[(MPI, its program)], and the reasons for those that are not among them."""
    found, errors = [], []
    for text in chosen.mpi:
        try:
            rival = mpi.find(text)
            found.append((rival, build(rival, chosen.build, REPOSITORY / "build/groups")))
        except mpi.Absent as reason:
            errors.append(str(reason))
    return found, errors


def build(rival, memspan, folder):
    """The program, unless it is newer than what it is made of."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"groups_bench.{rival}".replace(" ", "-").lower()
    made_of = [Path(rival.compilers["C++"]), *HERE.glob("*.cc"), *HERE.glob("*.h"), *(REPOSITORY / "include").rglob("*.h")]
    if program.exists() and all(path.stat().st_mtime < program.stat().st_mtime for path in made_of):
        return program
    include = REPOSITORY / "include"
    rival.compile(sorted(HERE.glob("*.cc")), program, "-std=c++20", "-Wall", "-Wextra", "-Wshadow", f"-I{include}",
                  f"-I{include / 'openshmem'}", f"-L{memspan / 'lib'}", "-lshmem")
    return program


def measure(chosen, rival, program, processes, operation):
    """What was printed of the operation's rows (bounded.Rows)."""
    common = [*rival.launcher, "-n", str(processes), *shlex.split(chosen.before), str(program)]
    common += ["--rounds", str(chosen.rounds), "--least", str(chosen.least), "--budget", str(chosen.budget)]
    common += ["--bind"] if processes <= jobs.cores() else []
    environment = {**os.environ, **rival.environment}
    environment["LD_LIBRARY_PATH"] = str(chosen.build / "lib")
    if rival.name == "Intel MPI":
        environment |= {"I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}  # the program binds itself

    def start(after, alone):
        if alone:
            words = ["--sizes", str(alone[1] or SIZES[0]), "--side", "memspan"]
        else:
            words = ["--sizes", ",".join(map(str, chosen.sizes))]
            words += ["--side", chosen.side] if chosen.side else []
            words += ["--after", f"{after[0]}/{after[1]}"] if after else []
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return [subprocess.Popen([*common, "--only", operation, *words], env=environment, start_new_session=True, **output)]

    return bounded.measure(start, chosen.timeout)


def parse(lines):
    """{(operation, size): {side: [us of each round]}} of the lines `NAME SIZE SIDE us VALUE...`; anything else is a remark."""
    found = {}
    for line in lines:
        words = line.split()
        if len(words) < 5 or words[3] != "us" or words[0] not in OPERATIONS:
            continue
        found.setdefault((words[0], int(words[1])), {})[words[2]] = [float(value) for value in words[4:]]
    return found


def failures_of(measured):
    """Results that differed, rows that memspan did not end, and why others were not measured; and the rows that only the MPI
    did not end."""
    failures = [line.removeprefix("# ERROR ") for line in measured.lines if line.startswith("# ERROR ")]
    of_rival = []
    for (operation, size), failed in measured.failed.items():
        where = failures if failed.alone else of_rival
        where.append(f"{operation} {size}: {failed.both}; memspan by itself: {failed.alone or 'completed'}")
    return failures + measured.errors, of_rival


def measure_all(chosen, rivals, processes):
    """{(operation, size): {MPI: its rows.Result}}, and both lists of failures_of(). An MPI that does not start is not started
    again."""
    table, failures, of_rivals, rivals = {}, [], [], list(rivals)
    for operation in chosen.only or OPERATIONS:
        for rival, program in list(rivals):
            measured = measure(chosen, rival, program, processes, operation)
            cells, (failed, of_rival) = parse(measured.lines), failures_of(measured)
            for cell, sides in cells.items():
                why = {str(rival): [measured.failed[cell].both] * chosen.rounds} if cell in measured.failed else {}
                table.setdefault(cell, {})[str(rival)] = result(*cell, processes, sides, why, chosen.rounds)
            if failed and not cells and failed == measured.errors:
                rivals.remove((rival, program))
                failed = [": ".join(failed + [line for line in measured.lines if re.search("[a-z]", line)][-1:])]
            failures += [f"{rival}, {processes} processes: {failure}" for failure in failed]
            of_rivals += [f"{rival}, {processes} processes: {failure}" for failure in of_rival]
    return table, failures, of_rivals


def result(operation, size, processes, sides, failures, asked=None):
    """A row of the table, where `asked` rounds were asked for. Where one side was timed alone there is nothing to
    compare; {rival: [why]}."""
    bare = "bare" if "bare" in sides else ""
    rounds = max(map(len, sides.values()))
    label = OPERATIONS[operation] + (f" ({rounds} rounds)" if asked and rounds < asked else "")
    row = rows.Row(f"{processes} processes", operation, label, size, rows.LEVEL, bare)
    columns = [sides.get(side, [None] * rounds) for side in ("memspan", "mpi", "bare")]
    return rows.Result(row, "us", [rows.Sample(*values) for values in zip(*columns)], processes, failures)


def fastest(results):
    """The MPI that takes the smallest part of memspan's time in its own rounds: in those of another MPI the machine may have
    been faster. Without memspan's times it is the one with the shortest time."""
    return max(results, key=lambda name: (results[name].ratio("rival") or 0, -(results[name].median_of("rival") or math.inf)))


def lines_of(table):
    """The headings and the rows, of which each has the figures of the rounds with its fastest MPI."""
    lines = [HEADINGS]
    for results in table.values():
        name = fastest(results)
        one = results[name]
        ratio, bare = one.ratio("rival"), one.ratio("bare")
        ours = report.side_text(one, "ours", "memspan") + ("" if bare is None else f" ({bare:.2f} × bare)")
        compared = "" if ratio is None else "{:.3f} ({:.3f} - {:.3f}), ".format(ratio, *one.spread())
        lines.append([one.row.label, report.size_text(one.row.size), ours, f"{name}: {report.side_text(one, 'rival', name)}",
                      compared + one.verdict()])
    return lines


def rows_of_record(table):
    """Each row is that of its fastest MPI."""
    found = []
    for (_, operation, _), results in table.items():
        name = fastest(results)
        found.append(report.row_of(results[name], OPERATIONS[operation], against=name))
    return found


def command_line(chosen):
    program = ["python3", "benchmarks/groups/groups.py"]
    if mode := os.environ.get("I_MPI_WAIT_MODE"):
        program.insert(0, f"I_MPI_WAIT_MODE={mode}")
    if chosen.before:
        program += ["--before", chosen.before]
    return report.typed_again(program, chosen, {"mpi": MPIS, "processes": PROCESSES, "only": None, "sizes": SIZES})


def main(arguments):
    chosen = options(arguments)
    # Ended from outside, it still takes its children along.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    busy = record.busy_cores()
    has_memspan = (chosen.build / "lib/libshmem.so").exists()
    rivals, failures = find_all(chosen) if has_memspan else ([], [f"{chosen.build} has no lib/libshmem.so"])
    if not rivals:
        say("\n".join(f"groups.py: {failure}" for failure in failures))
        return 2
    absent, of_rivals, everything = list(failures), [], {}
    for processes in chosen.processes:
        table, failed, of_rival = measure_all(chosen, rivals, processes)
        everything |= {(processes, *cell): results for cell, results in table.items()}
        failures += failed
        of_rivals += of_rival
        print(f"{processes} processes", report.text_table(lines_of(table)), *absent, *failed, *of_rival, sep="\n", flush=True)
    if chosen.record:
        versions = {"memspan": jobs.memspan_version()} | {rival.name: rival.version for rival, _ in rivals}
        one = record.table("MPI", command_line(chosen), "fastest MPI", versions, rows_of_record(everything), failures + of_rivals, busy)
        record.add(chosen.record, "mpi", one)
    missed = any(results[fastest(results)].verdict() == "missed" for results in everything.values())
    return 1 if failures or not everything or (chosen.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
