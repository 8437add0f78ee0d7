# SPDX-License-Identifier: Apache-2.0
"""Jobs whose rows have a time limit each. A row that does not end is told as such, and the others are measured.

The program of a job prints "begin NAME SIZE" before a row and "end" after the last one, on the output of its first
process. When a row takes too long, or a process ends in it, the job is ended. Then memspan alone measures that row,
which shows whose fault it was, and a new job goes on with the row after it.
"""

import os
import select
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "compare"))

import jobs  # noqa: E402

START_S = 120  # until the first row: libraries are loaded, perhaps compiled
END_S = 60  # after the last row
MOST_FAILED = 5  # rows of a job; the rest is not tried


@dataclass
class Followed:
    """What a job printed; the row that it was in and why it did not end, where that is so."""

    lines: list[str] = field(default_factory=list)
    row: tuple[str, int] | None = None
    failure: str | None = None


@dataclass
class Rows:
    """What was printed of all rows; why a row has no comparison; what else went wrong."""

    lines: list[str] = field(default_factory=list)
    failed: dict[tuple[str, int], "Failed"] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


@dataclass
class Failed:
    """Why a row did not end: with both sides, and with memspan alone (None: it did end)."""

    both: str
    alone: str | None


def measure(start, limit_s):
    """All rows of a job. start(after, alone) starts the processes, each in a session of its own, of which the first has a
    pipe as its output: of the rows after the row `after` (all if None), or, by memspan alone, of the row `alone`."""
    rows, after, tried = Rows(), None, 0
    while True:
        job = follow(start(after, None), limit_s)
        rows.lines += job.lines
        if job.failure is None:
            return rows
        if job.row is None:
            rows.errors.append(job.failure)
            return rows
        alone = follow(start(None, job.row), limit_s)
        rows.lines += alone.lines
        rows.failed[job.row] = Failed(job.failure, alone.failure)
        tried += 1
        if tried == MOST_FAILED:
            rows.errors.append(f"rows after {job.row[0]} {job.row[1]} were not tried: {MOST_FAILED} had failed")
            return rows
        after = job.row


def follow(processes, limit_s):
    """Reads what the first process prints until all have ended, a row is over its limit, or a process failed."""
    job, rest = Followed(), b""
    deadline, limit = time.monotonic() + START_S, START_S
    pipe = processes[0].stdout.fileno()
    try:
        while chunk := _read(pipe, processes, deadline):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in (raw.decode(errors="replace") for raw in lines):
                words = line.split()
                if words[:1] == ["begin"] and len(words) == 3:
                    job.row, limit = (words[1], int(words[2])), limit_s
                elif words == ["end"]:
                    job.row, limit = None, END_S
                else:
                    job.lines.append(line)
                    continue
                deadline = time.monotonic() + limit
        codes = [process.wait(timeout=max(0, deadline - time.monotonic())) for process in processes]
        if wrong := [code for code in codes if code != 0]:
            job.failure = jobs.describe(wrong[0])
    except (TimeoutError, subprocess.TimeoutExpired):
        job.failure = f"no end within {limit:g} s"
    except ProcessFailed as failed:
        job.failure = str(failed)
    finally:
        _end(processes)
    return job


class ProcessFailed(Exception):
    pass


def _read(pipe, processes, deadline):
    """The next bytes; none at the end."""
    while (left := deadline - time.monotonic()) > 0:
        if select.select([pipe], [], [], min(left, 0.5))[0]:
            return os.read(pipe, 1 << 16)
        for process in processes[1:]:
            if process.poll():
                raise ProcessFailed(jobs.describe(process.returncode))
    raise TimeoutError


def _end(processes):
    """A launcher takes its processes along when it is asked to end; what is left is killed."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, number)
        for process in processes:
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                continue
    for process in processes:
        if process.stdout:
            process.stdout.close()
