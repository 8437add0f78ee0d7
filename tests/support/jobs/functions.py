# SPDX-License-Identifier: Apache-2.0
"""Jobs of functions: each process runs a function of the test's module.

Importing what they need takes longer than most of them run (PyTorch: 1.5 s). So a process of each
rank imports a test's module once, calls nothing of it, and forks who runs its functions: every job
has processes of its own all the same, and every rank its own places in memory, as everywhere.

    test ──(module, function, environment; stdout, stderr)──> server of the rank ──fork──> process
         <──(its id, later how it ended)────────────────────

Run as a program (``python functions.py DESCRIPTOR``) it is such a server.
"""

import atexit
import gc
import importlib.util
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from jobs import hosts  # noqa: E402
from jobs.commands import LIMIT_S  # noqa: E402
from jobs.ports import free_port  # noqa: E402

_MOST_REQUEST = 1 << 20


# ---- in the tests


class _Server:
    """Ends when its standard input does, with the tests."""

    of_rank = {}

    def __init__(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind("")
            listener.listen()
            self._address = listener.getsockname()
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno())],
                # A thread of numpy's library would be lost by the fork.
                env={"OPENBLAS_NUM_THREADS": "1", **os.environ},
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
            )
        atexit.register(self._process.communicate, timeout=LIMIT_S)

    @classmethod
    def of(cls, rank):
        if rank not in cls.of_rank:
            cls.of_rank[rank] = cls()
        return cls.of_rank[rank]

    def start(self, request, *descriptors):
        """The connection that says which process it is, and how it ended."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(LIMIT_S)
        connection.connect(self._address)
        socket.send_fds(connection, [json.dumps(request).encode()], descriptors)
        return connection


class _Rank:
    def __init__(self, function, rank, environment):
        self._out, self._err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        request = [function.__code__.co_filename, function.__name__, environment]
        self._connection = _Server.of(rank).start(request, self._out.fileno(), self._err.fileno())
        self._pid = None
        self.code = None  # as subprocess has it; None: it runs

    def _receive(self, seconds):
        self._connection.settimeout(max(seconds, 0.001))
        text = self._connection.recv(100)
        if not text:
            raise RuntimeError("the process that starts the others has died")
        return int(text)

    def kill(self):
        if self._pid is None:
            self._pid = self._receive(LIMIT_S)
        if self.code is None:
            os.kill(self._pid, signal.SIGKILL)

    def wait(self, seconds):
        """Whether it has ended in time."""
        try:
            if self._pid is None:
                self._pid = self._receive(seconds)
            if self.code is None:
                self.code = self._receive(seconds)
        except (TimeoutError, socket.timeout):  # before Python 3.10 the latter was none
            return False
        return True

    def end(self):
        """(code, stdout, stderr)"""
        self._connection.close()
        texts = []
        for file in (self._out, self._err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
            file.close()
        return self.code, *texts


class Job:
    """``ranks`` processes that run ``function(rank, ranks)`` of its module, on the hosts of the session."""

    def __init__(self, function, ranks, **environment):
        port = str(free_port())
        self._ranks = [
            _Rank(
                function,
                rank,
                {
                    **os.environ,
                    "RANK": str(rank),
                    "WORLD_SIZE": str(ranks),
                    "MASTER_ADDR": hosts.ADDRESS,
                    "MASTER_PORT": port,
                    "MEMSPAN_TEST_URL": f"tcp://{hosts.ADDRESS}:{port}",
                    **hosts.environment(rank, ranks),
                    **environment,
                },
            )
            for rank in range(ranks)
        ]

    def kill(self, rank):
        self._ranks[rank].kill()

    def ends(self):
        """(code, stdout, stderr) of each rank; kills those that do not end in time."""
        deadline = time.monotonic() + LIMIT_S
        late = [r for r, rank in enumerate(self._ranks) if not rank.wait(deadline - time.monotonic())]
        for rank in late:
            self._ranks[rank].kill()
            self._ranks[rank].wait(LIMIT_S)
        outputs = [rank.end() for rank in self._ranks]
        assert not late, f"ranks {late} did not end within {LIMIT_S} s: {outputs}"
        return outputs


def run(function, ranks, **environment):
    """Runs the job; every rank must end with 0. What they printed."""
    ends = Job(function, ranks, **environment).ends()
    for rank, (code, out, err) in enumerate(ends):
        assert code == 0, f"rank {rank} ended with {code}:\n{out}\n{err}"
    return [out for _, out, _ in ends]


def from_first(rank, make):
    """In a process of a job: the bytes that rank 0 makes, in all of them, by the file MEMSPAN_TEST_FILE."""
    path = os.environ["MEMSPAN_TEST_FILE"]
    if rank == 0:
        made = make()
        with open(path + ".new", "wb") as file:
            file.write(made)
        os.rename(path + ".new", path)
        return made
    deadline = time.monotonic() + LIMIT_S
    while not os.path.exists(path):
        assert time.monotonic() < deadline, f"rank 0 has not made {path} in {LIMIT_S} s"
    with open(path, "rb") as file:
        return file.read()


# ---- in the servers and the processes


def _load(path):
    name = os.path.splitext(os.path.basename(path))[0]
    if name not in sys.modules:
        sys.path.insert(0, os.path.dirname(path))
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


def _fork(connection, descriptors):
    """The child's id; 0 in the child, whose outputs are the descriptors."""
    sys.stdout.flush()
    sys.stderr.flush()
    gc.freeze()  # what is there already needs no looking at
    child = os.fork()
    if child != 0:
        connection.send(str(child).encode())
        return child
    for number, descriptor in enumerate([os.open(os.devnull, os.O_RDONLY), *descriptors]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return 0


def _serve(listener):
    """Forks who is asked for until the tests end; returns, to the child, what it is to run."""
    watched = selectors.DefaultSelector()
    watched.register(sys.stdin, selectors.EVENT_READ)
    watched.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in watched.select():
            if key.fileobj is sys.stdin:
                sys.exit()
            if key.fileobj is listener:
                connection, _ = listener.accept()
                text, descriptors, _, _ = socket.recv_fds(connection, _MOST_REQUEST, 2)
                request = json.loads(text)
                try:
                    _load(request[0])
                except BaseException:  # noqa: BLE001, S110: the child says it where it is read
                    pass
                child = _fork(connection, descriptors)
                if child == 0:
                    return request
                for descriptor in descriptors:
                    os.close(descriptor)
                watched.register(os.pidfd_open(child), selectors.EVENT_READ, (child, connection))
            else:
                child, connection = key.data
                watched.unregister(key.fd)
                os.close(key.fd)
                _, status = os.waitpid(child, 0)
                connection.send(str(os.waitstatus_to_exitcode(status)).encode())
                connection.close()


def main():
    path, name, environment = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(environment)
    rank, ranks = int(environment["RANK"]), int(environment["WORLD_SIZE"])
    hosts.move_to_host(rank, ranks)
    getattr(_load(path), name)(rank, ranks)


if __name__ == "__main__":
    main()
