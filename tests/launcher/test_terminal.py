# SPDX-License-Identifier: Apache-2.0
"""oshrun in a terminal: rank 0 reads what is typed, Ctrl-C ends the job, Ctrl-Z stops it."""
import os
import pty
import select
import signal
import time
import unittest

from jobs.launcher import OSHRUN


class Terminal:
    """A job whose controlling terminal we hold the other end of."""

    def __init__(self, *arguments):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(OSHRUN, [OSHRUN, *arguments])
        self.seen = b""

    def type(self, keys):
        os.write(self.fd, keys)

    def read_until(self, text, seconds=20):
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {text!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError:  # everybody closed the terminal
                if text not in self.seen:
                    raise AssertionError(f"no {text!r} in {self.seen!r}") from None
        return self.seen

    def code(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                os.close(self.fd)
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"the job did not end; {self.seen!r}")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]


class TerminalTest(unittest.TestCase):
    def wait_for_state(self, pid, states):
        end = time.monotonic() + 10
        while state_of(pid) not in states:
            self.assertLess(time.monotonic(), end, f"process {pid} is {state_of(pid)}, not {states}")
            time.sleep(0.01)

    def test_rank_0_reads_what_is_typed(self):
        job = Terminal("-n", "2", "sh", "-c", 'read line && echo "got <$line>"; test $? = $MEMSPAN_RANK')
        job.type(b"hello\n")
        job.read_until(b"got <hello>")
        self.assertEqual(job.code(), 0)

    def test_end_of_input_reaches_rank_0(self):
        job = Terminal("-n", "2", "sh", "-c", "cat; echo end $MEMSPAN_RANK")
        job.read_until(b"end 1")
        job.type(b"\x04")
        job.read_until(b"end 0")
        self.assertEqual(job.code(), 0)

    def test_control_c_ends_the_job(self):
        job = Terminal("-n", "2", "sh", "-c", "echo ready $MEMSPAN_RANK; exec sleep 60")
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
