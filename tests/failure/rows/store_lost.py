# SPDX-License-Identifier: Apache-2.0
"""Row 11: a separate store is killed under traffic; memory goes on, control calls say so."""

import os
import signal
import time

import jobs
from rows.sheet import Row, check, random_moment

BOUND_MS = 1000
RANKS = 3
CALLS = 6  # kinds of blocking store calls of failure_store_user
ANNOUNCED = "memspan-store: listening at "


def start_store(sheet):
    """(process, url): memspan-store where the build has it."""
    tool = sheet.plan.tool("memspan-store")
    command = [tool, "--listen", "tcp://127.0.0.1:0"]
    if not os.path.exists(tool):
        command = [sheet.plan.program("failure_store_host")]
    store = jobs.start(command)
    line = store.stdout.readline()
    check(line.startswith(ANNOUNCED), f"the store said {line!r}")
    return store, line[len(ANNOUNCED) :].strip()


def one_kill(sheet):
    store, url = start_store(sheet)
    program = sheet.plan.program("failure_store_user")
    job = jobs.start([jobs.OSHRUN, "-n", str(RANKS), "--timeout", "60", program, "calls", url])
    jobs.read_ready(job.stdout, RANKS)
    with jobs.Ends([job.pid]) as ends:
        random_moment(sheet, ends, 0.05)
    since = time.monotonic()
    os.kill(store.pid, signal.SIGKILL)
    lines = []
    while sum(line.startswith("fine") for line in lines) < RANKS:
        lines += jobs.read_until(job.stdout, "fine")
    code, _, errors = jobs.finish(job)
    store.communicate()
    check(code == 0, f"the job ended with code {code}: {errors!r}")
    lost = [line.split() for line in lines if line.startswith("lost")]
    check(len(lost) == RANKS * CALLS, f"{len(lost)} calls ended: {lines}")
    for _, rank, call, microseconds, reason in lost:
        check(reason == "STORE_LOST", f"{call} of PE {rank} said {reason}")
        seconds = int(microseconds) / 1e6 - since
        check(seconds >= 0, f"{call} of PE {rank} lost the store before it was killed")
        sheet.took(seconds)


def kills(sheet):
    for _ in range(sheet.plan.rounds):
        with sheet.round("the store is killed"):
            one_kill(sheet)


ROWS = [Row("11", "the store is killed while memory is in use", BOUND_MS, kills)]
