# SPDX-License-Identifier: Apache-2.0
"""Starts that wait for somebody who is silent and alive: the store, or a member. Each ends at its limit, says for whom it
waited, and lets handlers of signals run meanwhile. MEMSPAN_SILENT_FACE chooses the face."""

import os
import signal
import socket
import time
import unittest

from jobs_of_silence import JOBS, LIMIT_S, SLACK_S, Process, Silence, calls_of, program_of

FACE = os.environ["MEMSPAN_SILENT_FACE"]
START_LIMIT_S = 2
WAITS_FOR_MEMBERS = ("openshmem", "cann", "group")


class StartsTest(unittest.TestCase):
    def start(self, meeting, rank, ranks):
        call = next(call for call in calls_of(FACE) if not call.is_end)
        process = Process([program_of(FACE), "run", call.name],
                          {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks), "RANK": str(rank), "SHMEM_SYMMETRIC_SIZE": "64M",
                           "MEMSPAN_INIT_TIMEOUT": str(START_LIMIT_S), "SILENT_START_LIMIT": str(START_LIMIT_S), **meeting})
        self.addCleanup(process.end)
        process.await_line("starts")
        return process

    def expect_end_in_time(self, process, named):
        begin = time.monotonic()
        early = list(process.lines(begin + START_LIMIT_S / 4))
        self.assertEqual(early, [], process.errors())
        process.process.send_signal(signal.SIGUSR1)
        self.assertEqual(next(process.lines(time.monotonic() + SLACK_S), None), "handled")
        process.process.wait(LIMIT_S)
        took = time.monotonic() - begin
        told = " ".join([*process.lines(time.monotonic() + SLACK_S), process.errors()])
        self.assertNotEqual(process.process.returncode, 0, told)
        self.assertLess(took, START_LIMIT_S + SLACK_S, told)
        self.assertRegex(told, named)

    def test_a_silent_store(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            # A job's rank 0 would host it.
            store = {"SILENT_STORE": f"tcp://127.0.0.1:{port}", "MEMSPAN_STORE": f"tcp://127.0.0.1:{port}"}
            self.expect_end_in_time(self.start(store, 1, 2), rf"127\.0\.0\.1:{port}")

    if FACE in WAITS_FOR_MEMBERS:
        def test_a_silent_member(self):
            with Silence(is_far=False).store(FACE) as meeting:
                silent = self.start(meeting, 1, 2) if FACE not in JOBS else None
                if silent is not None:
                    silent.process.send_signal(signal.SIGSTOP)
                self.expect_end_in_time(self.start(meeting, 0, 2), r"(PE|[Rr]ank|[Mm]ember)s? 1\b")


if __name__ == "__main__":
    unittest.main()
