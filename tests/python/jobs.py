# SPDX-License-Identifier: Apache-2.0
"""Processes for the tests of the Python packages: each runs a function of the test's module.

Run as a program (``python jobs.py FILE FUNCTION``) it is one such process.
"""

import importlib.util
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from ports import free_port  # noqa: E402

__all__ = ["Job", "free_port", "run"]
LIMIT_S = 120


def _end_of(process, outputs, rank):
    out, err = process.communicate()
    outputs[rank] = (process.returncode, out, err)


class Job:
    """``ranks`` processes that run ``function(rank, ranks)`` of its module."""

    def __init__(self, function, ranks, **environment):
        port = str(free_port())
        self._outputs = [None] * ranks
        self._processes = []
        self._readers = []
        for rank in range(ranks):
            process = subprocess.Popen(
                [sys.executable, __file__, function.__code__.co_filename, function.__name__],
                env={
                    **os.environ,
                    "RANK": str(rank),
                    "WORLD_SIZE": str(ranks),
                    "MASTER_ADDR": "127.0.0.1",
                    "MASTER_PORT": port,
                    "MEMSPAN_TEST_URL": f"tcp://127.0.0.1:{port}",
                    **environment,
                },
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            self._processes.append(process)
            reader = threading.Thread(target=_end_of, args=(process, self._outputs, rank))
            reader.start()
            self._readers.append(reader)

    def kill(self, rank):
        self._processes[rank].kill()

    def ends(self):
        """(code, stdout, stderr) of each rank; kills those that do not end in time."""
        deadline = time.monotonic() + LIMIT_S
        for reader in self._readers:
            reader.join(max(0, deadline - time.monotonic()))
        late = [rank for rank, reader in enumerate(self._readers) if reader.is_alive()]
        for process in self._processes:
            process.kill()
        for reader in self._readers:
            reader.join()
        assert not late, f"ranks {late} did not end within {LIMIT_S} s: {self._outputs}"
        return self._outputs


def run(function, ranks, **environment):
    """Runs the job; every rank must end with 0. What they printed."""
    ends = Job(function, ranks, **environment).ends()
    for rank, (code, out, err) in enumerate(ends):
        assert code == 0, f"rank {rank} ended with {code}:\n{out}\n{err}"
    return [out for _, out, _ in ends]


def main():
    path, name = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("test_module", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(path))
    spec.loader.exec_module(module)
    getattr(module, name)(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


if __name__ == "__main__":
    main()
