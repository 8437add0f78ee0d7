# SPDX-License-Identifier: Apache-2.0
"""Two faults, and between them a process ends its membership: by each call of the face that does so, and by exit().
MEMSPAN_SILENT_FACE chooses the face. The faults befall two processes of two other hosts, and the store."""

import concurrent.futures
import contextlib
import itertools
import os
import re
import signal
import subprocess
import unittest

import jobs
from jobs_of_silence import (CALLER, JOBS, LOST_S, SILENT, SLACK_S, STORE, Call, Deafness, Finding, Silence, await_stopped,
                             calls_of, check)
from needs import needs

FACE = os.environ["MEMSPAN_SILENT_FACE"]
# Rank 0 of a CANN job hosts its store.
FAULTS = ("store", "killed", "stopped", "cut") if FACE != "cann" else ("killed", "stopped", "cut")
NEAR, FAR = 2, 3
AT_ONCE = 4 * os.cpu_count()
END_S = LOST_S + SLACK_S  # docs/reliability.md: an end with a lost peer, and one without the store


class Store:
    """The job's; it may be killed, and come back."""

    def __init__(self, silence):
        host, meeting = silence.address()
        secret = ["--secret-file", meeting["MEMSPAN_JOB_SECRET_FILE"]] if "MEMSPAN_JOB_SECRET_FILE" in meeting else []
        self.command = [*silence.place(CALLER)[0], STORE, *secret, "--listen"]
        self.process = self.start(f"tcp://{host}:0")
        self.url = jobs.read_line(self.process.stdout).split()[-1]

    def start(self, url):
        return jobs.start([*self.command, url])

    def toggle(self):
        """Kills it, or starts another one in its place."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        else:
            self.process = self.start(self.url)
            jobs.read_line(self.process.stdout)

    def end(self):
        self.process.kill()
        self.process.communicate()


def with_store(base):
    """A silence whose jobs have a store of their own."""

    class WithStore(base):
        @contextlib.contextmanager
        def store(self, face):
            if face == "cann":
                with super().store(face) as meeting:
                    yield meeting
                return
            self.store_process = Store(self)
            url = self.store_process.url
            try:
                yield {"MEMSPAN_STORE" if face in JOBS else "SILENT_STORE": url, **self.address()[1]}
            finally:
                self.store_process.end()

    return WithStore


def befall(silence, fault, processes, rank):
    victim = processes[rank].process
    if fault == "store":
        silence.store_process.toggle()
    elif fault == "killed":
        victim.kill()
        victim.wait()
    elif fault == "stopped":
        victim.send_signal(signal.SIGSTOP)
        await_stopped(victim.pid)
    else:
        silence.cut_off(rank)


def make_end(silence, call, first, second):
    """What is wrong with that end, or nothing."""
    try:
        with silence.job(FACE, Call(call, "", "", True)) as processes:
            befall(silence, first, processes, SILENT)
            caller = processes[CALLER]
            for process in [processes[NEAR]] + [processes[SILENT]] * (first == "store"):
                process.tell()
            caller.tell()
            caller.tell()  # and it ends after the call
            caller.await_line("begins")
            befall(silence, second, processes, FAR)
            if second == "store":
                processes[FAR].tell()
            try:
                code = caller.process.wait(END_S)
            except subprocess.TimeoutExpired:
                raise Finding(f"it has not ended {END_S:.0f} s after the second fault: {caller.errors()}") from None
            errors = caller.errors()
            # A call that returns nothing ends the process of a CANN job.
            check(code == 0 or (code == 1 and re.search(r"PE [1-3]", errors)), f"it ended with {code}: {errors}")
    except Finding as finding:
        return str(finding)
    finally:
        if isinstance(silence, Deafness):
            for rank in (SILENT, FAR):
                silence.cut_off(rank, False)
    return None


def findings_of(cases):
    """In a process of its own, and so on hosts of its own."""
    simulated = with_store(Silence)(is_far=True)
    found = {}
    with contextlib.ExitStack() as stack:
        wired = None
        for call, first, second in cases:
            if "cut" in (first, second) and wired is None:
                wired = stack.enter_context(with_store(Deafness)())
            silence = wired if "cut" in (first, second) else simulated
            found[f"{call}: {first}, {second}"] = make_end(silence, call, first, second)
    return found


class TwoFaultsTest(unittest.TestCase):
    def check(self, pairs):
        ends = [call.name for call in calls_of(FACE) if call.is_end] + ["exit"]
        cases = [(call, *pair) for call in ends for pair in pairs]
        with concurrent.futures.ProcessPoolExecutor(AT_ONCE) as pool:
            parts = pool.map(findings_of, [cases[first::AT_ONCE] for first in range(AT_ONCE)])
        found = {name: finding for part in parts for name, finding in part.items()}
        self.assertEqual(len(found), len(cases))
        wrong = [f"{name}: {finding}" for name, finding in found.items() if finding]
        self.assertFalse(wrong, "\n".join(wrong))

    def test_on_one_machine(self):
        self.check([pair for pair in itertools.product(FAULTS, FAULTS) if "cut" not in pair])

    @needs("hosts")
    def test_with_cut_cables(self):
        self.check([pair for pair in itertools.product(FAULTS, FAULTS) if "cut" in pair])


if __name__ == "__main__":
    unittest.main()
