# SPDX-License-Identifier: Apache-2.0
"""Jobs of programs, under oshrun or by hand, and what they leave."""

import os
import select
import signal
import subprocess
import time

from jobs.ports import free_port

OSHRUN = os.environ.get("MEMSPAN_OSHRUN", "oshrun")
VICTIM = os.environ.get("MEMSPAN_VICTIM")
UNITTEST = os.environ.get("MEMSPAN_UNITTEST")
LIMIT_S = 120  # the longest that a job may take


def start(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(), **environment):
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        pass_fds=pass_fds,
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


def read_line(stream):
    """The next line and no byte more: what readline() reads ahead, communicate() would not give."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(stream.fileno(), 1)):
        line += byte
    return line.decode()


def read_ready(stream, ranks):
    """{rank: pid} from as many "ready RANK PID" lines."""
    pids = {}
    while len(pids) < ranks:
        words = read_line(stream).split()
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
        if not name.startswith(("vader_segment.", "sm_segment.", "osc", "tests-etcd."))
    )


def by_hand_at(port, ranks, command, **environment):
    """The processes of `command` that meet next to `port`."""
    meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    return [
        start(command, **{**meeting, "RANK": str(rank), **environment}) for rank in range(ranks)
    ]


class Ends:
    """Watches that processes end: by descriptors that never mean another process, or by their numbers if those are
    refused."""

    def __init__(self, pids):
        self.descriptors = {}
        self.numbers = set()
        for pid in pids:
            try:
                self.descriptors[os.pidfd_open(pid)] = pid
            except ProcessLookupError:
                pass
            except OSError:
                self.numbers.add(pid)

    def close(self):
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wait(self, seconds):
        """The processes that are still there when all have ended or the time is over."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        waiting = dict(self.descriptors)
        for descriptor in waiting:
            poll.register(descriptor, select.POLLIN)
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            for descriptor, _ in poll.poll(1000 * left):
                poll.unregister(descriptor)
                del waiting[descriptor]
        while any(map(is_alive, self.numbers)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return sorted([*waiting.values(), *filter(is_alive, self.numbers)])


def read_until(stream, prefix):
    """The lines up to the first that begins with `prefix`, which is the last of them."""
    lines = []
    while not lines or not lines[-1].startswith(prefix):
        line = stream.readline()
        if not line:
            raise AssertionError(f"ended before it said \"{prefix}\": {lines}")
        lines.append(line.rstrip("\n"))
    return lines


def marked(mark):
    """Processes, not yet waited for or not, that were started with `mark` in the environment."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if mark.encode() in environment.read() and is_alive(int(name)):
                    found.append(int(name))
        except OSError:
            pass
    return found


def end_all(mark):
    """Ends what still runs of the jobs with this mark; the processes that had to be ended."""
    pids = marked(mark)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    return pids


class Stopwatch:
    def __init__(self):
        self.start = time.monotonic()

    def seconds(self):
        return time.monotonic() - self.start
