# SPDX-License-Identifier: Apache-2.0
"""Row 25: every call that may block, with a peer that is stopped: not dead, and not coming.

The CANN face has time-outs: its calls say TIMEOUT, and those that return nothing end the process.
OpenSHMEM has none: its calls wait, and go on when the peer does."""

import contextlib
import os
import re
import signal
import time

import jobs
from rows.death import CALLS, Job
from rows.early import LIMIT_S, EarlyJob, returned, start_with_input
from rows.sheet import Row, check, check_in, random_moment

# Past the deadline: 50 ms are promised, but two cores that run other things too may owe them.
BOUND_MS = 250
TIMEOUT_CODES = {"malloc": 1, "calloc": 1, "align": 1}  # a NULL
TIMEOUT = -7
RETURNING = ["malloc", "calloc", "align", "finalize"]
# Nothing is returned: the process ends with a line, or the reason is memspan_last_error()'s.
VOID = ["barrier", "barrier_all", "free", "team_barrier", "malloc_nothing"]
MOST_WAIT_S = LIMIT_S + 2


def check_late(sheet, ms):
    check(ms >= 1e3 * LIMIT_S - 1, f"returned after {ms:.1f} ms, before the deadline")
    sheet.took(ms / 1e3 - LIMIT_S)


def stopped_peer(sheet, call):
    """The survivors' lines, and their ends, of a call that one of three never makes."""
    job = EarlyJob(sheet, call, 3, idle=sheet.random.randrange(3))
    os.kill(job.pids[job.idle], signal.SIGSTOP)
    since = job.go()
    outcomes = []
    try:
        for rank in job.callers():
            process = job.processes[rank]
            with jobs.Ends([process.pid]) as ends:
                # Both end: those that return go on to finalize, which has a deadline too.
                left = ends.wait(max(0.0, since + 2 * MOST_WAIT_S - time.monotonic()))
            check(not left, f"PE {rank} still blocks after {time.monotonic() - since:.1f} s")
            code, out, errors = jobs.finish(process)
            outcomes.append((rank, code, out.splitlines(), errors))
    finally:
        for process in job.processes:
            process.kill()
            process.communicate()
    return outcomes


def check_not_met(rank, lines):
    """A call that timed out leaves nobody out of step: the next one does not succeed without the
    peer that never came."""
    later = [line for line in lines if line.startswith("returned")][1:]
    check(later and returned(later[0])[0] != 0, f"PE {rank} met a stopped peer: {later}")


def early_returning(sheet, call):
    for rank, _, lines, errors in stopped_peer(sheet, call):
        line = next((line for line in lines if line.startswith("returned")), None)
        check(line is not None, f"PE {rank} ended: {errors!r}")
        code, ms, reason = returned(line)
        check(code == TIMEOUT_CODES.get(call, TIMEOUT), f"PE {rank} got {code} ({reason})")
        check_in(f"shmem_{call}", reason)
        check_late(sheet, ms)
        if call != "finalize":
            check_not_met(rank, lines)


def early_void(sheet, call):
    for rank, code, lines, errors in stopped_peer(sheet, call):
        line = next((line for line in lines if line.startswith("returned")), None)
        if line is None:
            check(code == 1, f"PE {rank} ended with code {code}: {errors!r}")
            check_in("shmem_", errors)
            continue
        _, ms, reason = returned(line)
        check(reason != "", f"PE {rank} went on as if nothing had been")
        check_late(sheet, ms)
        check_not_met(rank, lines)


def early_init(sheet, _):
    """Rank 1 of three is stopped when it begins; the others are timed out by name."""
    url = f"tcp://127.0.0.1:{jobs.free_port()}"
    program = sheet.plan.program("failure_early")
    stopped = start_with_input([program, "guest", "1", "3", url, "60", "0"])
    os.kill(stopped.pid, signal.SIGSTOP)
    others = [
        start_with_input([program, "init", str(rank), "3", url, str(LIMIT_S), "0"])
        for rank in (0, 2)
    ]
    try:
        codes = []
        for process in others:
            _, out, errors = jobs.finish(process)
            line = next(line for line in out.splitlines() if line.startswith("returned"))
            code, ms, reason = returned(line)
            codes.append(code)
            check(code != 0, f"joined without rank 1: {out!r}")
            # Rank 0 hosts the store; who is a little later than it hears that the store is gone.
            check(code != TIMEOUT or re.search(r"not come: rank 1( \[memspan-explain [a-z-]+\])?$", reason), reason)
            check(ms <= 1e3 * LIMIT_S + 1000 + BOUND_MS, f"took {ms:.0f} ms")
        check(TIMEOUT in codes, f"codes {codes}")
    finally:
        stopped.kill()
        stopped.communicate()


def openshmem_waits(sheet, call):
    """A peer is stopped at any moment and goes on later: the job ends well, if late."""
    ranks = 3
    rounds = 100 if call == "finalize" else 300
    launch = "by hand" if call != "finalize" else "oshrun"
    job = Job(sheet, launch, ranks, call, "all", str(rounds))
    stopped = sheet.random.randrange(ranks)
    with job.survivors(stopped) as ends:
        random_moment(sheet, ends, 0.01)
        with contextlib.suppress(ProcessLookupError):  # a quick job may be over by then
            os.kill(job.pids[stopped], signal.SIGSTOP)
            # Long enough for any detector to be wrong; nobody may end.
            ends.wait(0.3)
            os.kill(job.pids[stopped], signal.SIGCONT)
    for code, errors in job.endings():
        check(code == 0, f"PE {stopped} was stopped; code {code}: {errors!r}")
        check("died" not in errors, errors)


def walk(sheet):
    """Each call once; more rounds choose among them at random."""
    cases = [(early_returning, call) for call in RETURNING]
    cases += [(early_void, call) for call in VOID]
    cases += [(early_init, "init_attr")]
    cases += [(openshmem_waits, call) for call in CALLS]
    count = max(sheet.plan.rounds, len(cases)) if sheet.plan.rounds >= 50 else len(cases)
    for case, call in sheet.pick(cases, min(count, 4 * len(cases))):
        with sheet.round(f"{case.__name__} {call}"):
            case(sheet, call)


ROWS = [Row("25", "a call with a time-out, and a peer that is stopped", BOUND_MS, walk, promise_ms=50)]
