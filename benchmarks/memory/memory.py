#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Resident memory of the processes of a job, a group and a pool, next to processes of Open MPI; prints a table.

    benchmarks/install_rivals.sh build/rivals
    python3 benchmarks/memory/memory.py --build build [--processes 2,16,64 --only openshmem,group,pool] [--record FILE]

The processes (resident.c) stop after the start and a barrier, after a small and a large operation, and a group once more after
its idle time. Then a process's memory is the mean of all Pss (/proc/PID/smaps_rollup), which counts shared pages once, without
the 2 MiB of data that its calls are given. The launcher is not counted. An MPI that is missing or fails has empty
cells and a reason below the table. The exit code is 0 when all was measured, 1 when something failed, 2 when nothing can run.
"""

import argparse
import fcntl
import os
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compare")]

import jobs  # noqa: E402
import mpi  # noqa: E402
import record  # noqa: E402
import report  # noqa: E402

KINDS = {"openshmem": "OpenSHMEM job", "group": "group", "pool": "pool"}
PHASES = ("started", "used", "idle")
PROCESSES = (2, 16, 64)
DATA_KIB = 2048  # of resident.c; of it private memory:
PRIVATE_KIB = {"openshmem": 0, "group": 2048, "pool": 2048, "mpi": 2048}
HEADINGS = ["processes", "memory", "after", "memspan KiB", "of it private", "Open MPI KiB", "of it private", "memspan / Open MPI"]


class Failed(Exception):
    """A job that did not come as far as it should."""


class Job:
    """The processes of one job, which stop at each phase until pass_on(). Ends with all its processes."""

    def __init__(self, commands, environment, folder, limit):
        self.deadline = time.monotonic() + limit
        self.locks = {phase: open(folder / phase, "w", encoding="utf-8") for phase in PHASES}
        for file in self.locks.values():
            fcntl.flock(file, fcntl.LOCK_EX)
        output, end = os.pipe()
        self.children = [subprocess.Popen(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=end,
                                          stderr=subprocess.STDOUT, start_new_session=True) for command in commands]
        os.close(end)
        self.output, self.text = open(output, "rb", buffering=0), ""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.output, selectors.EVENT_READ)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for child in self.children:
            jobs.end(child)
        for file in (*self.locks.values(), self.output, self.selector):
            file.close()

    def pids_at(self, phase, processes):
        """Waits until all processes are there."""
        while True:
            found = [int(line.split()[2]) for line in self.text.split("\n")[:-1] if line.startswith(f"at {phase} ")]
            if len(found) == processes:
                return found
            if not self.selector.select(max(self.deadline - time.monotonic(), 0)):
                raise Failed(f"{len(found)} of {processes} processes were {phase} in time: {self.text.strip().splitlines()[-1:]}")
            data = self.output.read(1 << 16)
            if not data:
                raise Failed(f"the processes ended before they were {phase}: {self.text.strip().splitlines()[-1:]}")
            self.text += data.decode(errors="replace")

    def pass_on(self, phase):
        fcntl.flock(self.locks[phase], fcntl.LOCK_UN)

    def finish(self):
        for child in self.children:
            code = child.wait(max(self.deadline - time.monotonic(), 0.1))
            if code != 0:
                raise Failed(f"{jobs.describe(code)}: {self.text.strip().splitlines()[-1:]}")


def memory_of(pid):
    """Pss and private memory in KiB."""
    fields = {words[0]: int(words[1]) for words in map(str.split, Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:])}
    return fields["Pss:"], fields["Private_Clean:"] + fields["Private_Dirty:"]


def measure(kind, commands, environment, processes, phases, limit):
    """{phase: (Pss, private memory) of a process in KiB, without its data}"""
    found = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Job(commands(folder), environment, folder, limit) as job:
            for phase in phases:
                values = [memory_of(pid) for pid in job.pids_at(phase, processes)]
                data = (0, 0) if phase == "started" else (DATA_KIB, PRIVATE_KIB[kind])
                found[phase] = tuple(sum(column) / processes - own for column, own in zip(zip(*values), data))
                job.pass_on(phase)
            job.finish()
    return found


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def commands_of(kind, build, processes):
    program = str(build / "bin/memory_resident")

    def commands(folder):
        if kind == "openshmem":
            return [[str(build / "bin/oshrun"), "-n", str(processes), program, kind, str(folder)]]
        url = f"tcp://127.0.0.1:{free_port()}"
        return [[program, kind, str(folder), str(rank), str(processes), url] for rank in range(processes)]

    return commands


def options(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build", help="memspan's build tree (default: build)")
    parser.add_argument("--mpi", default="build/rivals/openmpi", help="Open MPI's folder; empty: without it")
    parser.add_argument("--processes", default=PROCESSES, type=lambda text: tuple(map(int, text.split(","))), help="default 2,16,64")
    parser.add_argument("--only", default=tuple(KINDS), type=lambda text: tuple(text.split(",")), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--timeout", type=float, default=120, help="seconds of a job")
    record.option(parser)
    chosen = parser.parse_args(arguments)
    chosen.build = chosen.build.resolve()
    if unknown := set(chosen.only) - set(KINDS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(KINDS)}")
    return chosen


def find_rival(chosen):
    """The MPI and its program, or None; and why."""
    try:
        rival = mpi.find(chosen.mpi)
        program = chosen.build / "memory_resident.mpi"
        rival.compile([HERE / "resident.c"], program, "-DRESIDENT_MPI")
        return (rival, program), []
    except mpi.Absent as reason:
        return None, [str(reason)]


def measure_all(chosen, rival):
    """{(processes, kind): measure()}, where kind "mpi" is the rival; and failures."""
    found, failures = {}, []
    for processes in chosen.processes:
        for kind in (*chosen.only, *(["mpi"] if rival else [])):
            environment, phases = {"SHMEM_SYMMETRIC_SIZE": "64M"}, PHASES if kind == "group" else PHASES[:2]
            commands = commands_of(kind, chosen.build, processes)
            if kind == "mpi":
                environment = rival[0].environment
                command = [*rival[0].launcher, "-n", str(processes), str(rival[1]), kind]
                commands = lambda folder, command=command: [[*command, str(folder)]]
            try:
                found[processes, kind] = measure(kind, commands, environment, processes, phases, chosen.timeout)
            except (Failed, OSError, subprocess.TimeoutExpired) as failure:
                failures.append(f"{KINDS.get(kind, 'Open MPI')}, {processes} processes: {failure}")
    return found, failures


def lines_of(found):
    lines = [HEADINGS]
    for (processes, kind), phases in found.items():
        for phase, ours in phases.items() if kind != "mpi" else ():
            theirs = found.get((processes, "mpi"), {}).get("started" if phase == "started" else "used")
            after = {"started": "start and barrier", "used": "calls", "idle": "calls and idle time"}[phase]
            cells = ["-"] * 3 if theirs is None else [f"{theirs[0]:,.0f}", f"{theirs[1]:,.0f}", f"{ours[0] / theirs[0]:.3f}"]
            lines.append([str(processes), KINDS[kind], after, f"{ours[0]:,.0f}", f"{ours[1]:,.0f}", *cells])
    return lines + growth_lines(found)


def growth(found, kind, phase):
    """KiB that each further process adds to all of a job, or None."""
    sizes = [processes for processes, other in found if other == kind][-2:]
    if len(sizes) < 2 or sizes[0] == sizes[1]:
        return None
    low, high = (size * found[size, kind][phase][0] for size in sizes)
    return (high - low) / (sizes[1] - sizes[0])


def growth_lines(found):
    theirs = growth(found, "mpi", "used")
    return [["each more", KINDS[kind], "calls", f"{ours:,.0f}", "-", "-" if theirs is None else f"{theirs:,.0f}", "-", "-"]
            for kind in KINDS if (ours := growth(found, kind, "used")) is not None]


def rows_of(found):
    rows = []
    for kind in KINDS:
        for phase in ("used", "idle"):
            suffix = ", idle" if phase == "idle" else ""
            for processes in [size for (size, other), phases in found.items() if other == kind and phase in phases]:
                ours, theirs = found[processes, kind][phase][0], found.get((processes, "mpi"), {}).get("used", (None,))[0]
                rows.append(record.Row(f"{KINDS[kind]}{suffix}, a process of {processes}", "KiB", ours=ours, rival=theirs,
                                       ratio=theirs and ours / theirs, target=theirs and 1))
        if (ours := growth(found, kind, "used")) is not None:
            rows.append(record.Row(f"{KINDS[kind]}, each further process", "KiB", ours=ours, rival=growth(found, "mpi", "used")))
    return rows


def main(arguments):
    chosen = options(arguments)
    if not (chosen.build / "bin/memory_resident").exists():
        print(f"memory: {chosen.build} has no bin/memory_resident (-DMEMSPAN_BUILD_BENCHMARKS=ON)", file=sys.stderr)
        return 2
    busy = record.busy_cores()
    rival, absent = find_rival(chosen) if chosen.mpi else (None, [])
    found, failures = measure_all(chosen, rival)
    failures = absent + failures
    print(report.text_table(lines_of(found)), *failures, sep="\n", flush=True)
    if chosen.record:
        versions = {"memspan": jobs.memspan_version()} | ({rival[0].name: rival[0].version} if rival else {})
        one = record.table("Open MPI's memory", "python3 benchmarks/memory/memory.py", "Open MPI", versions, rows_of(found), failures, busy)
        record.add(chosen.record, "memory", one)
    return 1 if failures or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
