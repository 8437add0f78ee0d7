# SPDX-License-Identifier: Apache-2.0
"""Rows 1 and 6: a peer dies while the others wait for it, or at any moment of a collective."""

import contextlib
import os
import re
import signal
import time

import jobs
from rows.sheet import Row, check, random_moment

CALLS = [
    "barrier_all",
    "sync_all",
    "team_sync",
    "wait_until",
    "wait_until_all",
    "wait_until_any",
    "wait_until_some",
    "wait_until_all_vector",
    "wait_until_any_vector",
    "wait_until_some_vector",
    "signal_wait",
    "broadcast",
    "broadcast_large",
    "collect",
    "fcollect",
    "alltoall",
    "alltoalls",
    "reduce",
    "reduce_large",
    "malloc",
    "calloc",
    "align",
    "realloc",
    "free",
    "team_split_strided",
    "team_split_2d",
    "team_destroy",
    "finalize",
]
BOUND_MS = 1000
# Longer than a waiter takes to go from spinning to yielding to sleeping.
MOST_DELAY_S = 0.02


class Job:
    """A job of failure_blocked, under oshrun or by hand, all of whose processes are known."""

    def __init__(self, sheet, launch, ranks, *arguments, **environment):
        program = sheet.plan.program("failure_blocked")
        self.launch = launch
        if launch == "oshrun":
            command = [jobs.OSHRUN, "-n", str(ranks), "--timeout", "60", program, *arguments]
            self.processes = [jobs.start(command, **environment)]
            self.pids = jobs.read_ready(self.processes[0].stdout, ranks)
        else:
            port = jobs.free_port()
            self.processes = jobs.by_hand_at(port, ranks, [program, *arguments], **environment)
            self.pids = {}
            for process in self.processes:
                self.pids.update(jobs.read_ready(process.stdout, 1))

    def kill(self, rank):
        since = time.monotonic()
        os.kill(self.pids[rank], signal.SIGKILL)
        return since

    def signal(self, rank, number):
        """Nothing when the process has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pids[rank], number)

    def survivors(self, rank):
        return jobs.Ends(pid for other, pid in self.pids.items() if other != rank)

    def endings(self):
        """[(exit code, stderr)] of the launcher, or of each rank."""
        return [(code, errors) for code, _, errors in map(jobs.finish, self.processes)]


def check_lines(job, dead, call):
    """Every survivor has one line that names the dead, and ends with code 1."""
    endings = job.endings()
    errors = "".join(text for _, text in endings)
    died = rf"shmem_\w+: PE {dead} \(process {job.pids[dead]}\) died"
    for rank in job.pids:
        if rank != dead:
            check(
                re.search(rf"^memspan: PE {rank}: {died}", errors, re.MULTILINE),
                f"PE {rank} in {call} did not name PE {dead}: {errors!r}",
            )
    if job.launch == "oshrun":
        check(endings[0][0] == 128 + signal.SIGKILL, f"oshrun ended with code {endings[0][0]}")
        check(f"PE {dead} (process {job.pids[dead]}) was killed by signal 9" in errors, errors)
    else:
        codes = [code for rank, (code, _) in enumerate(endings) if rank != dead]
        check(set(codes) == {1}, f"codes {codes}")


def kill_one(sheet, job, dead, call):
    with job.survivors(dead) as ends:
        random_moment(sheet, ends, MOST_DELAY_S)
        since = job.kill(dead)
        left = ends.wait(BOUND_MS / 1e3 + 1)
        seconds = time.monotonic() - since
    check(not left, f"{len(left)} survivors did not end within {seconds:.1f} s")
    check_lines(job, dead, call)
    sheet.took(seconds)


def blocked(sheet):
    combinations = [(call, launch) for call in CALLS for launch in ("oshrun", "by hand")]
    for call, launch in sheet.pick(combinations):
        ranks = sheet.random.choice([2, 3, 4])
        dead = sheet.random.randrange(ranks)
        with sheet.round(f"{call}, {launch}, PE {dead} of {ranks}"):
            job = Job(sheet, launch, ranks, call, str(dead))
            kill_one(sheet, job, dead, call)


def inside_collectives(sheet):
    ranks = 4
    for launch in sheet.pick(["oshrun", "by hand"]):
        dead = sheet.random.randrange(ranks)
        with sheet.round(f"{launch}, PE {dead} of {ranks}"):
            job = Job(sheet, launch, ranks, "mixed", "all", "1000000000")
            kill_one(sheet, job, dead, "a collective")


ROWS = [
    Row("1", "a peer is killed while the others wait for it", BOUND_MS, blocked, promise_ms=100),
    Row("6", "a peer is killed inside a collective", BOUND_MS, inside_collectives, promise_ms=100),
]
