# SPDX-License-Identifier: Apache-2.0
"""Row 23: finalize when a peer is dead, dies, or is slow; what the process held is free after it."""

import signal
import time

import jobs
from needs import lacks
from rows.death import Job, check_lines, kill_one
from rows.early import EarlyJob, holdings, returned
from rows.sheet import Row, check, check_in, random_moment

BOUND_MS = 1000
PEER_LOST = -3
RANKS = 3
MOST_DELAY_S = 0.02  # before a peer is stopped or killed
LEAST_DELAY_S = 1e-5


def openshmem_during(sheet, launch):
    dead = sheet.random.randrange(RANKS)
    kill_one(sheet, Job(sheet, launch, RANKS, "finalize", str(dead)), dead, "finalize")


def openshmem_before(sheet, launch):
    """By hand, since oshrun ends a job in which somebody died: finalize is called after that."""
    dead = sheet.random.randrange(RANKS)
    program = sheet.plan.program("failure_blocked")
    job = Job.__new__(Job)
    job.launch = launch
    job.processes = jobs.by_hand_at(
        jobs.free_port(), RANKS, [program, "late-death", str(dead)], stdin=jobs.subprocess.PIPE
    )
    job.pids = {}
    for process in job.processes:
        job.pids.update(jobs.read_ready(process.stdout, 1))
    job.kill(dead)
    job.processes[dead].wait()
    with job.survivors(dead) as ends:
        since = time.monotonic()
        for process in job.processes:
            process.stdin.close()
            process.stdin = None
        left = ends.wait(BOUND_MS / 1e3 + 1)
        seconds = time.monotonic() - since
    check(not left, f"{len(left)} survivors did not end")
    check_lines(job, dead, "finalize")
    sheet.took(seconds)


def openshmem_slow(sheet, launch):
    """A peer that is stopped for a while: everybody waits for it, and all ends well. A job that was
    over before the stop shows nothing: the next one is stopped sooner."""
    delay_s = MOST_DELAY_S
    while not stopped_in_time(sheet, launch, delay_s):
        check(delay_s > LEAST_DELAY_S, "each job was over before it could be stopped")
        delay_s /= 5


def stopped_in_time(sheet, launch, most_delay_s):
    job = Job(sheet, launch, RANKS, "finalize", "all", "100")
    slow = sheet.random.randrange(RANKS)
    with jobs.Ends(job.pids.values()) as ends:
        random_moment(sheet, ends, most_delay_s)
        job.signal(slow, signal.SIGSTOP)
        is_in_time = len(ends.wait(0)) == RANKS
        if is_in_time:
            ends.wait(0.1)
        since = time.monotonic()
        job.signal(slow, signal.SIGCONT)
    for code, errors in job.endings():
        check(code == 0, f"code {code}: {errors!r}")
    seconds = time.monotonic() - since
    check(seconds < 10, f"took {seconds:.1f} s after the slow peer had gone on")
    return is_in_time


def early(sheet, is_dead_before):
    """The CANN face returns an error that names the dead, and the process can start again."""
    dead = sheet.random.randrange(RANKS)
    job = EarlyJob(sheet, "finalize", RANKS, idle=dead, limit_s=10)
    try:
        if is_dead_before:
            job.processes[dead].kill()
            job.processes[dead].wait()
        since = job.go()
        if not is_dead_before:
            with jobs.Ends(job.pids.values()) as ends:
                random_moment(sheet, ends, MOST_DELAY_S)
                since = time.monotonic()
                job.processes[dead].kill()
        for rank in job.callers():
            line = jobs.read_until(job.processes[rank].stdout, "returned")[-1]
            seconds = time.monotonic() - since
            code, _, reason = returned(line)
            check(code == PEER_LOST, f"PE {rank} got {code} ({reason})")
            check_in(f"PE {dead} (process {job.pids[dead]}) died", reason)
            sheet.took(seconds)
        for rank in job.callers():
            lines = jobs.read_until(job.processes[rank].stdout, "again")
            check_free(rank, job.before[rank], holdings(lines, "after holds"))
            check(lines[-1] == "again 0", f"PE {rank} could not start again: {lines[-1]}")
            code, _, errors = jobs.finish(job.processes[rank])
            check(code == 0, f"PE {rank} ended with code {code}: {errors!r}")
    finally:
        for process in job.processes:
            process.kill()
            process.communicate()


def check_free(rank, before, after):
    _, descriptors, threads, _ = before
    check(after is not None, f"PE {rank} did not say what it holds")
    pipe = 2 if lacks("pidfd") else 0  # one for the life of the process, which shows its end to others
    check(after[1] <= descriptors + pipe, f"PE {rank}: {after[1]} descriptors, {descriptors} before")
    check(after[2] <= threads, f"PE {rank}: {after[2]} threads, {threads} before")


CASES = [
    (openshmem_during, "oshrun"),
    (openshmem_during, "by hand"),
    (openshmem_before, "by hand"),
    (openshmem_slow, "oshrun"),
    (openshmem_slow, "by hand"),
    (early, True),
    (early, False),
]


def table(sheet):
    for case, argument in sheet.pick(CASES):
        with sheet.round(f"{case.__name__} {argument}"):
            case(sheet, argument)


ROWS = [Row("23", "finalize with a peer that is dead, dies or is slow", BOUND_MS, table, promise_ms=100)]
