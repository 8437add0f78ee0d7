# SPDX-License-Identifier: Apache-2.0
"""Starting jobs for the failure tests, under oshrun or by hand, and looking at what they leave."""

import os
import socket
import subprocess
import time

OSHRUN = os.environ["MEMSPAN_OSHRUN"]
VICTIM = os.environ["MEMSPAN_VICTIM"]
UNITTEST = os.environ["MEMSPAN_UNITTEST"]
LIMIT_S = 60


def free_port():
    """A port whose neighbour 11 above is free too, as the rendezvous of RANK and WORLD_SIZE needs."""
    while True:
        with socket.socket() as low, socket.socket() as high:
            low.bind(("127.0.0.1", 0))
            port = low.getsockname()[1]
            try:
                high.bind(("127.0.0.1", port + 11))
            except (OSError, OverflowError):
                continue
            return port


def start(command, **environment):
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def oshrun(ranks, *arguments, **environment):
    command = [OSHRUN, "-n", str(ranks), "--timeout", str(LIMIT_S), VICTIM, *arguments]
    return start(command, **environment)


def by_hand(ranks, *arguments, **environment):
    """The processes of a job that meets through RANK and its companions."""
    port = str(free_port())
    meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    return [
        start([VICTIM, *arguments], **{**meeting, "RANK": str(rank), **environment})
        for rank in range(ranks)
    ]


def read_ready(stream, ranks):
    """{rank: pid} from as many "ready RANK PID" lines."""
    pids = {}
    while len(pids) < ranks:
        words = stream.readline().split()
        if not words:
            raise AssertionError(f"the job ended after {len(pids)} ready lines")
        pids[int(words[1])] = int(words[2])
    return pids


def finish(process):
    """(exit code, stdout, stderr), killing what does not end in time."""
    try:
        out, err = process.communicate(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        raise AssertionError(f"did not end within {LIMIT_S} s:\n{out}\n{err}")
    return process.returncode, out, err


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def traces():
    """What a job must not leave: names in /dev/shm and in the user's runtime directory."""
    # Other programs on the machine (Open MPI in a benchmark) come and go there with names of theirs.
    directories = ["/dev/shm", os.environ.get("XDG_RUNTIME_DIR", "/nonexistent")]
    return sorted(
        os.path.join(directory, name)
        for directory in directories
        if os.path.isdir(directory)
        for name in os.listdir(directory)
        if not name.startswith(("vader_segment.", "sm_segment.", "osc"))
    )


class Stopwatch:
    def __init__(self):
        self.start = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.start
