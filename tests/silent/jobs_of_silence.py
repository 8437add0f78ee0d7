# SPDX-License-Identifier: Apache-2.0
"""Jobs in which one process is silent and alive, while another makes a call: see silent.h."""

import contextlib
import os
import re
import select
import signal
import subprocess
import tempfile
import time
import typing

import jobs
from jobs.namespaces import Namespaces

BUILD = os.environ["MEMSPAN_BUILD"]
STORE = os.path.join(BUILD, "bin", "memspan-store")
TIMEOUT_S = 2.0  # silent.h: kTimeout
LOST_S = 3.0  # docs/reliability.md
SLACK_S = 1.0  # a busy machine's
LIMIT_S = 20.0
CALLER, SILENT = 0, 1  # ranks
JOBS = ("openshmem", "cann")


class Finding(Exception):
    """What a call did otherwise than it should."""


class Process:
    """One of the job, and what it says."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**os.environ, **environment})
        self.rest = b""
        self.said = []

    def tell(self, line=""):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")
            self.process.stdin.flush()

    def lines(self, until):
        """What it says until that moment; ends with its output."""
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                self.said.append(line.decode())
                yield self.said[-1]
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                return
            if not (more := os.read(self.process.stdout.fileno(), 4096)):
                return
            self.rest += more

    def await_line(self, word, limit_s=LIMIT_S):
        for line in self.lines(time.monotonic() + limit_s):
            if line.split()[0] == word:
                return line.split(" ", 1)[1] if " " in line else ""
        raise Finding(f'no "{word}" within {limit_s:.1f} s, but {self.said}; {self.errors()}')

    def await_error(self):
        """The first line that it prints on its standard error."""
        select.select([self.process.stderr], [], [], SLACK_S)
        return self.errors()

    def errors(self):
        os.set_blocking(self.process.stderr.fileno(), False)
        return (self.process.stderr.read() or b"").decode()[-500:]

    def end(self):
        self.process.kill()
        self.process.communicate()


def await_stopped(pid):
    """A stop is over when each thread has stopped."""
    def states():
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat") as stat:
                yield stat.read().rsplit(")", 1)[1].split()[0]

    deadline = time.monotonic() + LIMIT_S
    while set(states()) != {"T"}:
        check(time.monotonic() < deadline, f"process {pid} does not stop")


class Call(typing.NamedTuple):
    """A line of what a program lists."""

    name: str
    near: str
    far: str
    is_end: bool


def calls_of(face):
    listed = subprocess.run([program_of(face), "list"], capture_output=True, text=True, check=True).stdout
    return [Call(*line.split()[:3], line.endswith(" end")) for line in listed.splitlines()]


def program_of(face):
    return os.path.join(BUILD, "tests", f"silent_{face}")


class Silence:
    """Jobs on simulated hosts, in which a process is stopped."""

    def __init__(self, is_far, is_full=False):
        self.is_far = is_far
        self.is_full = is_full

    def __enter__(self):
        return self

    def __exit__(self, *what):
        pass

    def place(self, rank):
        """The words before a command that runs where that rank is, and its environment."""
        hosts = "abac" if self.is_far else "aaa"
        return [], {"MEMSPAN_HOST_ID": hosts[rank], "LOCAL_WORLD_SIZE": str(hosts.count(hosts[rank]))}

    def address(self):
        """Where the first host is reached, and what the members of a job need to meet there."""
        return "127.0.0.1", {"MEMSPAN_CARRIER": "tcp"}

    @contextlib.contextmanager
    def store(self, face):
        """What faces without a job meet at."""
        host, meeting = self.address()
        if face in JOBS:  # rank 0 hosts it
            port = jobs.free_port()
            yield {"MASTER_ADDR": host, "MASTER_PORT": str(port), "SILENT_STORE": f"tcp://{host}:{port}", **meeting}
            return
        secret = ["--secret-file", meeting["MEMSPAN_JOB_SECRET_FILE"]] if "MEMSPAN_JOB_SECRET_FILE" in meeting else []
        store = jobs.start([*self.place(CALLER)[0], STORE, "--listen", f"tcp://{host}:0", *secret])
        try:
            yield {"SILENT_STORE": jobs.read_line(store.stdout).split()[-1], **meeting}
        finally:
            store.kill()
            store.communicate()

    @contextlib.contextmanager
    def job(self, face, call):
        size = 4 if self.is_far else 3
        with self.store(face) as meeting:
            common = {"WORLD_SIZE": str(size), "SHMEM_SYMMETRIC_SIZE": "64M", **meeting}
            if self.is_full:
                common["MEMSPAN_SILENCE_LIMIT"] = "60s"
            command = [program_of(face), "run", call.name] + ["fill"] * self.is_full
            processes = []
            try:
                for rank in range(size):
                    before, place = self.place(rank)
                    processes.append(Process([*before, *command], {**common, **place, "RANK": str(rank)}))
                addresses = " ".join([process.await_line("ready") for process in processes])
                for process in processes:
                    process.tell(addresses)
                for process in processes:
                    process.await_line("met")
                yield processes
            finally:
                for process in processes:
                    process.end()

    @contextlib.contextmanager
    def of(self, process):
        """That process is silent; what is yielded ends it."""
        process.process.send_signal(signal.SIGSTOP)
        await_stopped(process.process.pid)
        process.tell()  # so that it helps when it goes on
        yield lambda: process.process.send_signal(signal.SIGCONT)

    def ends(self, call):
        """What ends the call."""
        if self.is_full and call.far == "lost":
            return "with-peer"
        return call.far if self.is_far else call.near


class Deafness(Silence):
    """Jobs on network namespaces, in which a process runs and nothing that is sent to it arrives."""

    HOSTS = (0, 1, 0, 2)

    def __init__(self):
        super().__init__(is_far=True)
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.wires = self.stack.enter_context(Namespaces(3))
        folder = self.stack.enter_context(tempfile.TemporaryDirectory())  # mode 0700
        self.secret = os.path.join(folder, "secret")
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the secret of three hosts")
        return self

    def __exit__(self, *what):
        self.stack.close()

    def place(self, rank):
        host = self.HOSTS[rank]
        return self.wires.inside(host), {"LOCAL_WORLD_SIZE": str(self.HOSTS.count(host))}

    def address(self):
        return self.wires.addresses[0], {"MEMSPAN_JOB_SECRET_FILE": self.secret}

    def cut_off(self, rank, is_cut=True):
        """Drops what others send to the host of that rank; or no longer."""
        table = "table inet memspan_silent"
        script = f"add {table}\ndelete {table}\n"
        if is_cut:
            script += f"{table} {{ chain input {{ type filter hook input priority 0;\niif != lo drop\n}}\n}}\n"
        subprocess.run([*self.wires.inside(self.HOSTS[rank]), "nft", "-f", "-"], input=script, text=True, check=True,
                       capture_output=True)

    @contextlib.contextmanager
    def of(self, process):
        def end():
            self.cut_off(SILENT, False)
            process.tell()  # not earlier: what it sends arrives

        self.cut_off(SILENT)
        try:
            yield end
        finally:
            self.cut_off(SILENT, False)


BOUNDS_S = {"at-once": SLACK_S, "soon": 1.0 + SLACK_S, "in-time": TIMEOUT_S + SLACK_S, "silence": 2.0 + SLACK_S, "lost": LOST_S + SLACK_S}


def check(holds, finding):
    if not holds:
        raise Finding(finding)


def make_call(silence, face, call):
    """Makes the call; a Finding says what is wrong."""
    ends = silence.ends(call)
    needs_no_peer = ends in ("at-once", "soon", "silence", "with-peer")  # or waits for it
    with silence.job(face, call) as processes, silence.of(processes[SILENT]) as go_on:
        caller = processes[CALLER]
        for process in processes:
            if process is not processes[SILENT]:
                process.tell()
        caller.await_line("begins")
        begin = time.monotonic()
        if ends == "with-peer":
            early = list(caller.lines(begin + 1.0))
            check(not early, f"it should wait for the peer, but said {early}")
        bound = BOUNDS_S.get(ends, LIMIT_S)
        if silence.is_full and call.is_end:  # it waits for the call that fills the connection
            bound = max(bound, BOUNDS_S["in-time"])
        first = next(caller.lines(begin + 0.3), None)
        if first is None:  # it waits: a handler of a signal runs
            caller.process.send_signal(signal.SIGUSR1)
            first = next(caller.lines(time.monotonic() + SLACK_S), None)
            if first == "handled":
                if ends == "with-peer":
                    go_on()
                first = next(caller.lines(begin + bound), None)
            else:  # the call may have returned just then
                check(first is not None, f"no handler of a signal runs within {SLACK_S} s")
        if first is None and face == "cann" and not needs_no_peer:  # a call that returns nothing ends the process
            check_ended(caller, begin + bound, "wait" in call.name)
            return
        check(first is not None, f"it has not returned after {time.monotonic() - begin:.1f} s; {caller.errors()}")
        word, code, took = first.split()
        check(word == "returned", f'"{first}" instead of "returned"')
        check(float(took) < 1e3 * bound, f"returned after {float(took):.0f} ms")
        reason = caller.await_line("reason")
        if needs_no_peer:
            check(code == "0", f"failed: {code}, {reason}")
        else:
            check(code != "0", "succeeded without the peer")
            # Those that wait for anybody know of nobody.
            waits_for_anybody = call.name == "memspan_transfer_receive" or "wait" in call.name
            # A member of this host that waits for the silent one is named first, and names that one.
            names_it = names_the_silent_one(reason) or (face == "group" and "PE 2" in reason and
                                                        names_the_silent_one(processes[2].await_error()))
            check(waits_for_anybody or names_it, f"whom it needs is not named: {reason}")
        if not call.is_end:
            # The end of such a job is a call with a time-out, too.
            most = TIMEOUT_S + SLACK_S if face == "cann" and not needs_no_peer else SLACK_S
            check_rest(caller, processes, go_on, needs_no_peer, most, silence.is_full)


def names_the_silent_one(text):
    return any(name in text for name in ("PE 1", "rank 1", "member 1", "127.0.0.1:6001"))


def check_ended(caller, until, waits_for_anybody):
    try:
        code = caller.process.wait(max(0.1, until - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise Finding("it has not returned, and the process has not ended") from None
    errors = caller.errors()
    check(code == 1, f"the process ended with code {code}: {errors}")
    # Another process may have been earlier, and ended.
    check(re.search("PE [1-9]", errors) or waits_for_anybody, f"the last line names no PE: {errors}")


def check_rest(caller, processes, go_on, needs_no_peer, most_s, is_full):
    """Other threads went on meanwhile, and the face can be ended."""
    pause, count, *failure = caller.await_line("others").split(maxsplit=2)
    check(not failure, f"another thread's operation with another peer failed: {failure}")
    check(float(pause) < 1e3 * SLACK_S, f"another thread's operation with another peer took {float(pause):.0f} ms")
    check(int(count) > 0, "another thread had no turn")
    if needs_no_peer or is_full:  # it may be needed for the end, or by the call that fills the connection
        go_on()
    for process in processes:
        process.tell()
    code, took = caller.await_line("ended").split()
    check(float(took) < 1e3 * most_s, f"the end took {float(took):.0f} ms")
    check(code == "0" or not needs_no_peer, f"the end failed: {code}")
