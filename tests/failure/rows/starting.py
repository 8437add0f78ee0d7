# SPDX-License-Identifier: Apache-2.0
"""Row 15: a start that cannot succeed says so, with both values, and hurts nobody else."""

import re
import socket
import time

import jobs
from rows.sheet import Row, check

BOUND_MS = 1000
LIMIT_S = 1  # MEMSPAN_INIT_TIMEOUT where the time-out itself is meant
RANKS = 2


def member(sheet, port, rank, ranks=RANKS, what="hello", **environment):
    meeting = {
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
    }
    return jobs.start([sheet.plan.program("failure_victim"), what], **{**meeting, **environment})


def expect_error(sheet, process, words, since=None, until_s=0.0):
    """Ends with an error that has all the words, `until_s` and at most a second after `since`."""
    since = since or time.monotonic()
    code, _, errors = jobs.finish(process)
    seconds = time.monotonic() - since
    check(code != 0, f"code 0: {errors!r}")
    for word in words:
        check(re.search(word, errors), f"no {word!r} in {errors!r}")
    check(seconds > until_s - 0.05, f"ended after {seconds:.2f} s, before {until_s:g} s")
    sheet.took(max(0.0, seconds - until_s))


def expect_hello(processes):
    for process in processes:
        code, out, errors = jobs.finish(process)
        check(code == 0 and f" of {len(processes)}" in out, f"code {code}: {out + errors!r}")


def listening(port):
    """Waits until somebody listens at the port; each look is a connection that says nothing."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.002)  # nothing tells of a listener that is not there yet
    raise AssertionError(f"nobody listens at {port}")


def port_of_a_stranger(sheet):
    port = jobs.free_port()
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", port + 11))
        stranger.listen()
        # The port may be free in a moment, so it is tried again, for 5 s at most.
        process = member(sheet, port, 0, MEMSPAN_INIT_TIMEOUT=str(LIMIT_S))
        expect_error(sheet, process, [rf"127\.0\.0\.1:{port + 11}", "in use"], until_s=LIMIT_S)


def port_of_another_job(sheet):
    port = jobs.free_port()
    first = member(sheet, port, 0)
    listening(port + 11)
    words = [rf"127\.0\.0\.1:{port + 11}", "another process is PE 0"]
    expect_error(sheet, member(sheet, port, 0), words)
    expect_hello([first, member(sheet, port, 1)])


def wrong_host_name(sheet):
    process = member(sheet, jobs.free_port(), 1, MASTER_ADDR="no-such-host.invalid",
                     MEMSPAN_INIT_TIMEOUT=str(LIMIT_S),
                     # The C library waits 5 s for an answer that was lost on its way, and asks again.
                     RES_OPTIONS="timeout:1 attempts:1")
    # A name may come to be known later (a cluster's do), so it is tried until the deadline.
    expect_error(sheet, process, [r"no-such-host\.invalid", "not known|resol"], until_s=LIMIT_S)


def wrong_host_of_rank_0(sheet):
    """An address that is not this host's: nothing to listen at."""
    process = member(sheet, jobs.free_port(), 0, MASTER_ADDR="192.0.2.1",
                     MEMSPAN_INIT_TIMEOUT=str(LIMIT_S))
    expect_error(sheet, process, [r"192\.0\.2\.1"])


def nobody_there(sheet):
    port = jobs.free_port()
    process = member(sheet, port, 1, MEMSPAN_INIT_TIMEOUT=str(LIMIT_S))
    expect_error(sheet, process, [rf"127\.0\.0\.1:{port + 11}"], until_s=LIMIT_S)


def wrong_world_size(sheet):
    port = jobs.free_port()
    first = member(sheet, port, 0)
    listening(port + 11)
    expect_error(sheet, member(sheet, port, 1, ranks=5), [r"\b5\b", r"\b2\b"])
    expect_hello([first, member(sheet, port, 1)])


def rank_out_of_range(sheet):
    expect_error(sheet, member(sheet, jobs.free_port(), 7), [r"RANK", r"\b7\b", r"\b1\b"])


def duplicate_rank(sheet):
    port = jobs.free_port()
    first = [member(sheet, port, rank, ranks=3) for rank in (0, 1)]
    listening(port + 11)
    # One of two with the same rank is refused, whichever came first; the job of the other goes on.
    other = member(sheet, port, 1, ranks=3)
    with jobs.Ends([first[1].pid, other.pid]) as ends:
        since = time.monotonic()
        while len(ends.wait(0.02)) == 2:
            check(time.monotonic() < since + 5, "nobody was refused")
    refused, kept = (first[1], other) if first[1].poll() is not None else (other, first[1])
    expect_error(sheet, refused, [r"\brank 1\b", "taken|belongs"], since)
    expect_hello([first[0], kept, member(sheet, port, 2, ranks=3)])


def late_ranks(sheet):
    port = jobs.free_port()
    since = time.monotonic()
    here = [
        member(sheet, port, rank, ranks=5, MEMSPAN_INIT_TIMEOUT=str(LIMIT_S)) for rank in (0, 2)
    ]
    expect_error(sheet, here[0], [r"\b1\b.*\b3\b.*\b4\b"], since, LIMIT_S)
    code, _, errors = jobs.finish(here[1])
    check(code != 0, f"PE 2 ended with code 0: {errors!r}")


def late_but_in_time(sheet):
    port = jobs.free_port()
    first = member(sheet, port, 1)  # before rank 0, whom it has to wait for
    with jobs.Ends([first.pid]) as ends:
        check(ends.wait(0.2) == [first.pid], "did not wait for rank 0")
    expect_hello([member(sheet, port, 0), first])


def wrong_time_limit(sheet):
    process = member(sheet, jobs.free_port(), 0, MEMSPAN_INIT_TIMEOUT="soon")
    expect_error(sheet, process, ["MEMSPAN_INIT_TIMEOUT", "soon"])


def died_while_joining(sheet):
    """Either nobody had met it, and another may take its rank, or all end at once and name it."""
    port = jobs.free_port()
    patience = {"MEMSPAN_INIT_TIMEOUT": "3"}
    first = [member(sheet, port, rank, ranks=3, **patience) for rank in (0, 1)]
    with jobs.Ends([process.pid for process in first]) as ends:
        ends.wait(sheet.random.random() * 0.05)
    first[1].kill()
    first[1].communicate()
    since = time.monotonic()
    job = [first[0]] + [member(sheet, port, rank, ranks=3, **patience) for rank in (1, 2)]
    code, _, errors = jobs.finish(job[0])
    seconds = time.monotonic() - since
    others = [jobs.finish(process) for process in job[1:]]
    if code == 0:
        check(all(other[0] == 0 for other in others), f"PE 0 ended well: {others}")
        return
    # Who came too late for this job finds no store any more, until its time-out.
    check(all(other[0] != 0 for other in others), f"PE 0 did not end well: {others}")
    check(re.search(r"rank 1 .*gone|PE 1 died", errors), f"PE 0 did not name rank 1: {errors!r}")
    sheet.took(seconds)


CASES = [
    port_of_a_stranger,
    port_of_another_job,
    wrong_host_name,
    wrong_host_of_rank_0,
    nobody_there,
    wrong_world_size,
    rank_out_of_range,
    duplicate_rank,
    late_ranks,
    late_but_in_time,
    wrong_time_limit,
    died_while_joining,
]


def table(sheet):
    for case in sheet.pick(CASES, max(sheet.plan.rounds, len(CASES))):
        with sheet.round(case.__name__.replace("_", " ")):
            case(sheet)


ROWS = [Row("15", "port, host, size, rank are wrong, or a rank is late", BOUND_MS, table)]
