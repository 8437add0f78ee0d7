#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memspan's groups and OpenSHMEM next to an MPI in the same processes; prints one table.

    benchmarks/install_rivals.sh build/rivals
    python3 benchmarks/groups/groups.py --build build [--only allreduce --sizes 16384,262144] [--write-docs]

The MPI's mpiexec starts the processes, `groups_bench` (main.cc) alternates between the two libraries.
The exit code is 0 when everything ran, 1 when it did not (with --strict: or a row was missed), and 2
when there is nothing to run.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compare")]

import jobs
import mpi
import report
import rows

OPERATIONS = {  # labels: memspan's call, the MPI's
    "barrier": "group barrier, MPI_Barrier",
    "allreduce": "group all-reduce of floats, MPI_Allreduce",
    "broadcast": "group broadcast, MPI_Bcast",
    "alltoall": "group all-to-all, MPI_Alltoall",
    "allgather": "group all-gather, MPI_Allgather",
    "reduce_scatter": "group reduce-scatter of floats, MPI_Reduce_scatter_block",
    "shmem_barrier": "shmem_barrier_all, MPI_Barrier",
    "shmem_broadcast": "shmem_broadcastmem, MPI_Bcast",
    "shmem_alltoall": "shmem_alltoallmem, MPI_Alltoall",
    "put": "shmem_putmem + quiet, MPI_Put + MPI_Win_flush",
    "get": "shmem_getmem, MPI_Get + MPI_Win_flush",
}
KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB)
PROCESSES = (2, 4)


def list_of(convert):
    return lambda text: tuple(convert(word) for word in text.split(","))


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build", help="memspan's build tree (default: build)")
    parser.add_argument("--mpi", help="Intel MPI's folder (default: build/rivals), or as mpicxx.mpich")
    parser.add_argument("--processes", type=list_of(int), default=PROCESSES, help="default 2,4")
    parser.add_argument("--only", type=list_of(str), help=f"of {', '.join(OPERATIONS)}")
    parser.add_argument("--sizes", type=list_of(int), default=SIZES, help="bytes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--least", type=float, default=3, help="milliseconds of a batch of calls")
    parser.add_argument("--side", choices=("memspan", "mpi"), help="time this one alone")
    parser.add_argument("--before", default="", help="words before the program, as 'valgrind --tool=callgrind'")
    parser.add_argument("--timeout", type=float, default=600, help="seconds of each number of processes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--write-docs", action="store_true", help="rewrite the table in the document")
    parser.add_argument("--strict", action="store_true", help="fail when a row is missed")
    chosen = parser.parse_args(arguments)
    chosen.build = chosen.build.resolve()
    chosen.mpi = chosen.mpi or str(REPOSITORY / "build/rivals")
    if unknown := set(chosen.only or ()) - set(OPERATIONS):
        parser.error(f"unknown operations: {', '.join(sorted(unknown))}; there are {', '.join(OPERATIONS)}")
    return chosen


def say(line):
    print(line, file=sys.stderr, flush=True)


def build(rival, memspan, folder):
    """The program, unless it is newer than what it is made of."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / f"groups_bench.{rival.name.replace(' ', '').lower()}"
    made_of = [*HERE.glob("*.cc"), *HERE.glob("*.h"), *(REPOSITORY / "include").rglob("*.h")]
    if program.exists() and all(path.stat().st_mtime < program.stat().st_mtime for path in made_of):
        return program
    include = REPOSITORY / "include"
    rival.compile(sorted(HERE.glob("*.cc")), program, "-std=c++20", "-Wall", "-Wextra", "-Wshadow", f"-I{include}",
                  f"-I{include / 'openshmem'}", f"-L{memspan / 'lib'}", "-lshmem")
    return program


def measure(chosen, rival, program, processes):
    """{(operation, size): {side: [us of each round]}}, and what failed."""
    words = [*rival.launcher, "-n", str(processes), *shlex.split(chosen.before), str(program)]
    words += ["--sizes", ",".join(map(str, chosen.sizes)), "--rounds", str(chosen.rounds), "--least", str(chosen.least)]
    words += ["--only", ",".join(chosen.only)] if chosen.only else []
    words += ["--side", chosen.side] if chosen.side else []
    environment = dict(rival.environment)
    libraries = [str(chosen.build / "lib"), environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
    if rival.name == "Intel MPI":
        environment |= {"I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}  # the program binds itself
    if processes <= jobs.cores():
        words.append("--bind")
    done = jobs.run(words, environment, chosen.timeout)
    errors = [line.lstrip("# ") for line in done.output.splitlines() if line.startswith("# ERROR")]
    if done.failure and not errors:
        errors = [f"{done.failure} ({' / '.join(done.output.splitlines()[-2:])})"]
    return parse(done.output), errors


def parse(output):
    """Of the lines `NAME SIZE SIDE us VALUE...`; anything else is a remark."""
    found = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) < 5 or words[3] != "us" or words[0] not in OPERATIONS:
            continue
        found.setdefault((words[0], int(words[1])), {})[words[2]] = [float(value) for value in words[4:]]
    return found


def result(operation, size, processes, sides):
    """A row of the table. Where one side was timed alone there is nothing to compare."""
    bare = "bare" if "bare" in sides else ""
    row = rows.Row(f"{processes} processes", operation, OPERATIONS[operation], size, rows.LEVEL, bare)
    rounds = max(map(len, sides.values()))
    columns = [sides.get(side, [None] * rounds) for side in ("memspan", "mpi", "bare")]
    return rows.Result(row, "us", [rows.Sample(*values) for values in zip(*columns)], processes)


def section(results, rival, facts, errors):
    parts = [report.heading(facts, f"memspan {facts['memspan']} and {rival.name} {rival.version}"),
             report.markdown_table(report.lines_of(results, rival=rival.name)), "\n".join(f"- {error}" for error in errors)]
    return "\n\n".join(part for part in parts if part)


def command_line(chosen):
    program = ["python3", "benchmarks/groups/groups.py"]
    if not os.path.isdir(chosen.mpi):
        program += ["--mpi", chosen.mpi]
    if chosen.before:
        program += ["--before", chosen.before]
    return report.typed_again(program, chosen, {"processes": PROCESSES, "only": None, "sizes": SIZES})


def main(arguments):
    chosen = options(arguments)
    # Ended from outside, it still takes its children along.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    load = os.getloadavg()[0]
    try:
        rival = mpi.find(chosen.mpi)
        if not (chosen.build / "lib/libshmem.so").exists():
            raise mpi.Absent(f"{chosen.build} has no lib/libshmem.so")
        program = build(rival, chosen.build, REPOSITORY / "build/groups")
    except (mpi.Absent, subprocess.CalledProcessError) as reason:
        say(f"groups.py: {reason}")
        return 2
    results, errors = [], []
    for processes in chosen.processes:
        found, failed = measure(chosen, rival, program, processes)
        errors += [f"{processes} processes: {error}" for error in failed]
        results += [result(*cell, processes, sides) for cell, sides in found.items()]
    print(report.text_table(results, "memspan", rival.name))
    for error in errors:
        print(error)
    facts = report.facts(chosen.rounds, load, command_line(chosen)) | {"rival": f"{rival.name} {rival.version}"}
    if chosen.json:
        chosen.json.write_text(json.dumps(report.as_json(results, facts), indent=1) + "\n")
    if chosen.write_docs:
        done = report.rewrite(REPOSITORY / "docs/performance.md", "groups", section(results, rival, facts, errors))
        say(f"docs/performance.md: {'rewritten' if done else 'has no markers named groups'}")
    missed = any(one.verdict() == "missed" for one in results)
    return 1 if errors or not results or (chosen.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
