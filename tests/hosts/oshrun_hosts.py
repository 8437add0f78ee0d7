# SPDX-License-Identifier: Apache-2.0
"""Jobs of oshrun on network namespaces, which `ip netns exec` enters instead of ssh."""

import os
import subprocess
import tempfile
import unittest

import jobs
from jobs.launcher import environment
from jobs.namespaces import Namespaces
from needs import needs

ENTER = "ip netns exec {}"
BOUND_S = 1.0  # from a death to the end of the job
SILENCE_S = 10  # after which oshrun and an agent give each other up


def on_hosts(case):
    """Of a test case: skips it where there can be no hosts."""
    case = needs("hosts")(case)
    has_tls = os.environ.get("MEMSPAN_HAS_TLS", "ON") == "ON"
    return unittest.skipUnless(has_tls, "does not apply: this build has no TLS, which a store on a network needs")(case)


def read_file(pid, name):
    """Of /proc; empty when the process has ended."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read()
    except OSError:
        return b""


def command_of(pid):
    return read_file(pid, "cmdline").decode().split("\0")[:-1]


def parent_of(pid):
    return int(read_file(pid, "stat").rsplit(b")", 1)[1].split()[1])


class OnHosts(unittest.TestCase):
    """Every process of a test's jobs is marked, and none may be left."""

    @classmethod
    def setUpClass(cls):
        cls.hosts = cls.enterClassContext(Namespaces(3))

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())  # mode 0700
        self.mark = f"MEMSPAN_TEST_MARK={os.path.basename(self.folder)}"
        self.addCleanup(jobs.end_all, self.mark)

    def spec(self, *slots):
        return ",".join(f"{name}:{n}" for name, n in zip(self.hosts.names, slots) if n)

    def start(self, *words, shell=ENTER, stdin=subprocess.DEVNULL, **variables):
        mark, value = self.mark.split("=")
        options = ["--timeout", str(jobs.LIMIT_S), "--remote-shell", shell]
        return subprocess.Popen(
            [*self.hosts.inside(0), jobs.OSHRUN, *options, *words], text=True, stdin=stdin,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=environment(**{mark: value, "SHMEM_SYMMETRIC_SIZE": "64M", **variables}))

    def start_on(self, slots, *words, **more):
        return self.start("--hosts", self.spec(*slots), *words, **more)

    def run_on(self, slots, *words, **more):
        """(code, stdout, stderr)"""
        return jobs.finish(self.start_on(slots, *words, **more))

    def outputs(self, slots, *words, **more):
        code, out, errors = self.run_on(slots, *words, **more)
        self.assertEqual(code, 0, out[-2000:] + errors[-2000:])
        return sorted(out.splitlines())

    def agents(self):
        """Not the guards, which are forks of them."""
        return [pid for pid in jobs.marked(self.mark)
                if command_of(pid)[1:] == ["--agent"] and read_file(pid, "comm") == b"oshrun\n"]

    def expect_all_ended(self, pids, seconds=BOUND_S):
        with jobs.Ends(pids) as ends:
            self.assertEqual(ends.wait(seconds), [])
        self.assertEqual(jobs.marked(self.mark), [])

    def script(self, text):
        path = os.path.join(self.folder, "shell")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o700)
        return path
