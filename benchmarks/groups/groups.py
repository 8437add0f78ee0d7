#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memspan's groups and OpenSHMEM next to an MPI in the same processes; prints one table.

    benchmarks/install_rivals.sh build/rivals
    python3 benchmarks/groups/groups.py --build build [--only allreduce --sizes 16384,262144] [--write-docs]

The MPI's mpiexec starts the processes, `groups_bench` (main.cc) alternates between the two libraries. A row that does
not end in time says so, and the others are measured (benchmarks/bounded.py). Each number of processes has its table.
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

import bounded
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
    parser.add_argument("--budget", type=float, default=10, help="seconds that a row aims at, by fewer rounds")
    parser.add_argument("--side", choices=("memspan", "mpi"), help="time this one alone")
    parser.add_argument("--before", default="", help="words before the program, as 'valgrind --tool=callgrind'")
    parser.add_argument("--timeout", type=float, default=60, help="seconds of a row")
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
    """What was printed of all rows (bounded.Rows)."""
    common = [*rival.launcher, "-n", str(processes), *shlex.split(chosen.before), str(program)]
    common += ["--rounds", str(chosen.rounds), "--least", str(chosen.least), "--budget", str(chosen.budget)]
    common += ["--bind"] if processes <= jobs.cores() else []
    environment = {**os.environ, **rival.environment}
    libraries = [str(chosen.build / "lib"), rival.environment.get("LD_LIBRARY_PATH", "")]
    environment["LD_LIBRARY_PATH"] = ":".join(filter(None, libraries))
    if rival.name == "Intel MPI":
        environment |= {"I_MPI_FABRICS": "shm", "I_MPI_PIN": "0"}  # the program binds itself

    def start(after, alone):
        if alone:
            name, size = alone
            words = ["--only", name, "--sizes", str(size or SIZES[0]), "--side", "memspan"]
        else:
            words = ["--sizes", ",".join(map(str, chosen.sizes))]
            words += ["--only", ",".join(chosen.only)] if chosen.only else []
            words += ["--side", chosen.side] if chosen.side else []
            words += ["--after", f"{after[0]}/{after[1]}"] if after else []
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        return [subprocess.Popen([*common, *words], env=environment, start_new_session=True, **output)]

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


def errors_of(measured):
    """Results that differed, rows that memspan did not end even alone, and what was not tried."""
    errors = [line.removeprefix("# ERROR ") for line in measured.lines if line.startswith("# ERROR ")]
    for (operation, size), failed in measured.failed.items():
        errors += [f"{operation} {size}, memspan alone: {failed.alone}"] if failed.alone else []
    return errors + measured.errors


def result(operation, size, processes, sides, failures, asked=None):
    """A row of the table, where `asked` rounds were asked for. Where one side was timed alone there is nothing to
    compare; {rival: [why]}."""
    bare = "bare" if "bare" in sides else ""
    rounds = max(map(len, sides.values()))
    label = OPERATIONS[operation] + (f" ({rounds} rounds)" if asked and rounds < asked else "")
    row = rows.Row(f"{processes} processes", operation, label, size, rows.LEVEL, bare)
    columns = [sides.get(side, [None] * rounds) for side in ("memspan", "mpi", "bare")]
    return rows.Result(row, "us", [rows.Sample(*values) for values in zip(*columns)], processes, failures)


def section(results, rival, facts, errors):
    parts = [report.heading(facts, f"memspan {facts['memspan']} and {rival.name} {rival.version}"),
             report.markdown_table(report.lines_of(results, rival=rival.name)), "\n".join(f"- {error}" for error in errors)]
    return "\n\n".join(part for part in parts if part)


def command_line(chosen, processes=None):
    """That of all, or of the table of one number of processes."""
    program = ["python3", "benchmarks/groups/groups.py"]
    if mode := os.environ.get("I_MPI_WAIT_MODE"):
        program.insert(0, f"I_MPI_WAIT_MODE={mode}")
    if processes:
        chosen = argparse.Namespace(**{**vars(chosen), "processes": (processes,)})
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
    everything, errors = [], []
    for processes in chosen.processes:
        measured = measure(chosen, rival, program, processes)
        results = []
        for cell, sides in parse(measured.lines).items():
            failures = {rival.name: [failed.both] * chosen.rounds} if (failed := measured.failed.get(cell)) else {}
            results.append(result(*cell, processes, sides, failures, chosen.rounds))
        everything += results
        failed = errors_of(measured)
        errors += failed
        print(report.text_table(results, "memspan", rival.name), *failed, sep="\n", flush=True)
        if chosen.write_docs:
            marker = "groups" if processes == 2 else f"groups-{processes}"
            facts = report.facts(chosen.rounds, load, command_line(chosen, processes))
            done = report.rewrite(REPOSITORY / "docs/performance.md", marker, section(results, rival, facts, failed))
            say(f"docs/performance.md: {'rewritten' if done else f'has no markers named {marker}'}")
    if chosen.json:
        facts = report.facts(chosen.rounds, load, command_line(chosen)) | {"rival": f"{rival.name} {rival.version}"}
        chosen.json.write_text(json.dumps(report.as_json(everything, facts), indent=1) + "\n")
    missed = any(one.verdict() == "missed" for one in everything)
    return 1 if errors or not everything or (chosen.strict and missed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
