# SPDX-License-Identifier: Apache-2.0
"""Members of a pool on network namespaces, which a test commands (pool_member.c), and their store."""

import contextlib
import os
import re
import subprocess

import jobs
from namespace_jobs import NamespaceJobs

MEMBER = os.environ["MEMSPAN_POOL_MEMBER"]
STORE = os.environ["MEMSPAN_STORE_TOOL"]
ROUNDS = int(os.environ.get("MEMSPAN_TEST_ROUNDS", "2"))


class NoMember(AssertionError):
    """It did not join; why."""


class Member:
    """A process that has joined the pool. `send` and `receive` are the halves of a command."""

    def __init__(self, words, environment):
        self._process = jobs.start(words, stdin=subprocess.PIPE, **environment)
        line = jobs.read_line(self._process.stdout).split()
        if line[:1] != ["ready"]:
            raise NoMember(self.kill())
        self.pid = int(line[2])

    def send(self, *words):
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()

    def receive(self):
        return jobs.read_line(self._process.stdout).rstrip("\n")

    def __call__(self, *words):
        self.send(*words)
        return self.receive()

    def signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        """What it wrote to stderr, once it is gone; the first time."""
        if self._process.returncode is not None:
            return ""
        self._process.kill()
        self._process.stdin.close()
        errors = self._process.stderr.read()
        self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()
        return errors


class PoolJobs(NamespaceJobs):
    HOSTS = 3  # two of members, the last one of the store
    RANKS = 3

    def setUp(self):
        self.members = contextlib.ExitStack()
        self.addCleanup(self.members.close)

    def start_store(self, host=2, port=8666):
        address = f"tcp://{self.hosts.addresses[host]}:{port}"
        store = jobs.start([*self.hosts.inside(host), STORE, "--listen", address],
                           MEMSPAN_JOB_SECRET_FILE=self.secret)
        self.members.callback(self.end, store)
        self.assertIn("listening", jobs.read_line(store.stdout))
        return store, address

    @staticmethod
    def end(process):
        process.kill()
        process.communicate()

    def member(self, host, rank, url, **environment):
        words = [*self.hosts.inside(host), MEMBER, url, str(rank), str(self.RANKS)]
        made = Member(words, {"MEMSPAN_JOB_SECRET_FILE": self.secret, **environment})
        self.members.callback(made.kill)
        return made

    def expect_only_right_copies(self, *members):
        for member in members:
            done, ok, wrong, refused, other = member("end").split()
            self.assertEqual((done, wrong, refused, other), ("done", "0", "0", "0"))
            self.assertGreater(int(ok), 0)

    def at(self, answer, pattern="ok at"):
        """The time in an answer."""
        found = re.match(pattern + r" ([0-9.]+)", answer)
        self.assertTrue(found, answer)
        return float(found[1])

    @staticmethod
    def report(what, times):
        print(f"{what}: {', '.join(f'{1000 * took:.0f}' for took in times)} ms", flush=True)
