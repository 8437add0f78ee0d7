# SPDX-License-Identifier: Apache-2.0
"""oshrun in a terminal of its own."""
import os
import pty
import select
import signal
import termios
import time

from jobs.launcher import OSHRUN, environment


class Terminal:
    """A job whose controlling terminal we hold the other end of; `tostop` as stty has it."""

    def __init__(self, *arguments, program=OSHRUN, tostop=False, **variables):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            settings = termios.tcgetattr(0)
            settings[3] |= termios.TOSTOP * tostop
            termios.tcsetattr(0, termios.TCSANOW, settings)
            os.execvpe(program, [program, *arguments], environment(**variables))
        self.seen = b""

    def type(self, keys):
        os.write(self.fd, keys)

    def read_until(self, text, seconds=20):
        return self.read_while(lambda seen: text not in seen, repr(text), seconds)

    def read_while(self, is_missing, what, seconds=20):
        end = time.monotonic() + seconds
        while is_missing(self.seen):
            ready, _, _ = select.select([self.fd], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise AssertionError(f"no {what} in {self.seen!r}")
            try:
                self.seen += os.read(self.fd, 4096)
            except OSError:  # everybody closed the terminal
                raise AssertionError(f"no {what} in {self.seen!r}") from None
        return self.seen

    def close(self):
        os.close(self.fd)
        self.fd = -1

    def code(self, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                if self.fd >= 0:
                    self.close()
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        raise AssertionError(f"the job did not end; {self.seen!r}")


def state_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        return stat.read().rpartition(")")[2].split()[0]
