# SPDX-License-Identifier: Apache-2.0
"""memspan-store, as the connectors' users are told to start it."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

from support.server import free_port


class Store:
    """A store at a port of its own, which can be killed and come back."""

    def __init__(self, log: pathlib.Path) -> None:
        self.url = f"tcp://127.0.0.1:{free_port()}"
        self._log = log
        self.start()

    def start(self) -> None:
        """Until it listens."""
        program = "from memspan.programs import store; store()"
        with self._log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", program, "--listen", self.url],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        host, port = self.url.removeprefix("tcp://").split(":")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            assert self.process.poll() is None, self._log.read_text()
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.02)  # between questions
        raise AssertionError(f"no store at {self.url}: {self._log.read_text()}")

    def kill(self) -> None:
        """kill -9."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(20)

    def close(self) -> None:
        """Ends it."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(20)
