# SPDX-License-Identifier: Apache-2.0
"""Row 21: the wall clock of one process jumps by an hour, forward or back, while it runs."""

import mmap
import os
import signal
import struct
import tempfile
import time

import jobs
from rows.death import Job, check_lines
from rows.sheet import Row, Skip, check, random_moment
from rows.store_lost import start_store

BOUND_MS = 1000
HOUR_S = 3600
RANKS = 3
WAIT_MS = 300


class Clock:
    """The page that the interposed clock looks at."""

    def __init__(self, sheet):
        library = sheet.plan.program("failure_clock_jump.so")
        if not os.path.exists(library):
            raise Skip("failure_clock_jump.so is not built")
        self.folder = tempfile.TemporaryDirectory()
        # LD_PRELOAD is a list that a blank divides, and the folder of the build may have one.
        self.library = os.path.join(self.folder.name, "clock_jump.so")
        os.symlink(os.path.abspath(library), self.library)
        # Not on a disk: who writes to a mapped page that is on its way there waits for the disk.
        self.file = os.memfd_create("clock")
        os.ftruncate(self.file, mmap.PAGESIZE)
        self.words = mmap.mmap(self.file, mmap.PAGESIZE)

    def environment(self):
        path = f"/proc/{os.getpid()}/fd/{self.file}"
        return {"LD_PRELOAD": self.library, "MEMSPAN_CLOCK": path}

    def jump(self, seconds, rank):
        struct.pack_into("=q", self.words, 8, rank)
        struct.pack_into("=q", self.words, 0, seconds)

    def close(self):
        self.words.close()
        os.close(self.file)
        self.folder.cleanup()


def interposed(sheet, clock):
    """The library is there and moves the wall clock; otherwise the row would show nothing."""
    clock.jump(HOUR_S, -1)
    code, out, errors = jobs.finish(jobs.start(["date", "+%s"], **clock.environment()))
    check(code == 0 and int(out) > time.time() + HOUR_S / 2, f"date says {out!r} {errors!r}")
    clock.jump(0, -1)


def job_goes_on(sheet, clock, launch, jump_s):
    """No false failure; and a death after the jump is seen as before."""
    job = Job(sheet, launch, RANKS, "mixed", "all", "1000000000", **clock.environment())
    with jobs.Ends(job.pids.values()) as ends:
        random_moment(sheet, ends, 0.02)
        clock.jump(jump_s, sheet.random.randrange(RANKS))
        left = ends.wait(0.15)
        check(len(left) == RANKS, f"{RANKS - len(left)} processes ended after the jump")
    dead = sheet.random.randrange(RANKS)
    with job.survivors(dead) as ends:
        since = job.kill(dead)
        left = ends.wait(BOUND_MS / 1e3 + 1)
        seconds = time.monotonic() - since
    check(not left, "a death after the jump was not seen")
    check_lines(job, dead, "a collective")
    sheet.took(seconds)


def wait_ends_in_time(sheet, clock, _, jump_s):
    store, url = start_store(sheet)
    try:
        program = sheet.plan.program("failure_store_user")
        waiter = jobs.start([program, "wait", url, str(WAIT_MS)], **clock.environment())
        jobs.read_ready(waiter.stdout, 1)
        with jobs.Ends([waiter.pid]) as ends:
            random_moment(sheet, ends, 0.1)
            clock.jump(jump_s, -1)
        line = jobs.read_until(waiter.stdout, "waited")[-1]
        jobs.finish(waiter)
    finally:
        os.kill(store.pid, signal.SIGKILL)
        store.communicate()
    _, ms, code = line.split()
    check(code == "TIMEOUT", line)
    check(float(ms) >= WAIT_MS - 5, f"the wait ended after {ms} ms")
    sheet.took((float(ms) - WAIT_MS) / 1e3)


def start_ends_in_time(sheet, clock, _, jump_s):
    """A start whose time-out is a second, alone, with a jump inside it."""
    process = jobs.start(
        [sheet.plan.program("failure_victim"), "hello"],
        RANK="0",
        WORLD_SIZE="2",
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(jobs.free_port()),
        MEMSPAN_INIT_TIMEOUT="1",
        **clock.environment(),
    )
    since = time.monotonic()  # its program has been found and begun
    with jobs.Ends([process.pid]) as ends:
        ends.wait(0.1 + sheet.random.random() * 0.5)
        clock.jump(jump_s, -1)
        left = ends.wait(jobs.LIMIT_S)  # the bound is took()'s to check
        seconds = time.monotonic() - since
    code, _, errors = jobs.finish(process)
    check(not left, f"still there after {seconds:.2f} s, and ended with {code}: {errors!r}")
    check(code != 0 and "did not come" in errors, f"code {code}: {errors!r}")
    check(seconds >= 0.95, f"gave up after {seconds:.2f} s: {errors!r}")
    sheet.took(seconds - 1)


CASES = [
    (case, launch, jump_s)
    for case, launch in (
        (job_goes_on, "oshrun"),
        (job_goes_on, "by hand"),
        (wait_ends_in_time, ""),
        (start_ends_in_time, ""),
    )
    for jump_s in (HOUR_S, -HOUR_S)
]


def jumps(sheet):
    clock = Clock(sheet)
    try:
        interposed(sheet, clock)
        for case, launch, jump_s in sheet.pick(CASES):
            with sheet.round(f"{case.__name__} {launch}, {jump_s:+} s"):
                clock.jump(0, -1)
                case(sheet, clock, launch, jump_s)
    finally:
        clock.close()


ROWS = [Row("21", "the wall clock jumps by an hour", BOUND_MS, jumps)]
