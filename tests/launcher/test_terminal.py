# SPDX-License-Identifier: Apache-2.0
"""oshrun in a terminal: rank 0 reads what is typed, Ctrl-C ends the job, Ctrl-Z stops it."""
import os
import signal
import time
import unittest

from jobs.terminal import Terminal, state_of


class TerminalTest(unittest.TestCase):
    def wait_for_state(self, pid, states):
        end = time.monotonic() + 10
        while state_of(pid) not in states:
            self.assertLess(time.monotonic(), end, f"process {pid} is {state_of(pid)}, not {states}")
            time.sleep(0.01)

    def test_rank_0_reads_what_is_typed(self):
        job = Terminal("-n", "2", "sh", "-c", 'read line && echo "got <$line>"; test $? = $RANK')
        job.type(b"hello\n")
        job.read_until(b"got <hello>")
        self.assertEqual(job.code(), 0)

    def test_end_of_input_reaches_rank_0(self):
        job = Terminal("-n", "2", "sh", "-c", "cat; echo end $RANK")
        job.read_until(b"end 1")
        job.type(b"\x04")
        job.read_until(b"end 0")
        self.assertEqual(job.code(), 0)

    def test_control_c_ends_the_job(self):
        job = Terminal("-n", "2", "sh", "-c", "echo ready $RANK; exec sleep 60")
        job.read_until(b"ready 0")
        job.read_until(b"ready 1")
        job.type(b"\x03")
        job.read_until(b"oshrun: the job was ended by signal 2 (Interrupt)")
        self.assertEqual(job.code(), 130)

    def test_control_z_stops_all_of_it(self):
        job = Terminal("-n", "1", "sh", "-c", "echo pid $$.; exec sleep 60")
        seen = job.read_until(b".")
        child = int(seen.split(b"pid ")[1].split(b".")[0])
        self.wait_for_state(child, "S")
        job.type(b"\x1a")
        self.wait_for_state(child, "T")
        self.wait_for_state(job.pid, "T")
        os.kill(job.pid, signal.SIGCONT)
        self.wait_for_state(child, "SR")
        self.wait_for_state(job.pid, "SR")
        job.type(b"\x03")
        self.assertEqual(job.code(), 130)
