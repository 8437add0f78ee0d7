# SPDX-License-Identifier: Apache-2.0
"""examples/matmul_allreduce's run.sh in parts, one on each host: on network namespaces where the test
session has them (tests/hosts/on_hosts.py), else on hosts by name."""

import os
import shutil
import signal
import tempfile
import unittest

import jobs
from jobs import hosts

SOURCE, BUILD = os.environ["MEMSPAN_SOURCE"], os.environ["MEMSPAN_BUILD"]
SCRIPT = "examples/matmul_allreduce/scripts/run.sh"
SMALL = ("-M", "129", "-K", "257", "-N", "65", "-repeat", "2")


class PartsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A tree that is built: run.sh would have the tests' own built again."""
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.script = os.path.join(folder.name, SCRIPT)
        os.makedirs(os.path.dirname(cls.script))
        shutil.copy(os.path.join(SOURCE, SCRIPT), cls.script)
        os.mkdir(os.path.join(folder.name, "scripts"))
        with open(os.path.join(folder.name, "scripts", "build.sh"), "w") as build:
            build.write("echo built $1\n")
        os.symlink(BUILD, os.path.join(folder.name, "build"))

    def start(self, sizes, *arguments, **environment):
        """A part for each host with so many ranks, the last one first."""
        where = f"tcp://{'host-0' if hosts.inside(0) else hosts.ADDRESS}:{jobs.free_port()}"
        parts = []
        for host in reversed(range(len(sizes))):
            options = ["-ranks", sum(sizes), "-gnpus", sizes[host], "-frank", sum(sizes[:host]), "-ipport", where]
            command = [*hosts.inside(host), "bash", self.script, *map(str, options), *arguments]
            parts.insert(0, jobs.start(command, **hosts.environment_of(host), **environment))
            self.addCleanup(self.end, parts[0])
        return parts

    @staticmethod
    def end(part):
        part.kill()
        part.wait()
        part.stdout.close()
        part.stderr.close()

    def expect_right(self, sizes, *arguments):
        ends = [jobs.finish(part) for part in self.start(sizes, *arguments)]
        self.assertEqual([code for code, _, _ in ends], [0] * len(sizes), ends)
        self.assertRegex(ends[0][1], rf"every element of {sum(sizes)} ranks verified .*: PASS\n$")
        for _, out, _ in ends[1:]:
            self.assertEqual(out, "built -examples\n")

    def test_two_hosts_with_two_ranks_each(self):
        self.expect_right([2, 2], *SMALL, "-type", "fp16")

    def test_three_ranks_and_one(self):
        self.expect_right([3, 1], "-M", "700", "-K", "33", "-N", "1500", "-type", "bf16", "-repeat", "2", "-fnpu", "1")

    def test_the_end_of_a_part_ends_the_others(self):
        first, second = self.start([2, 2], *SMALL[:-1], "1000", MEMSPAN_LOG_LEVEL="INFO")
        jobs.commands.read_until(second.stderr, "memspan")  # it has joined
        second.send_signal(signal.SIGTERM)
        self.assertNotEqual(jobs.finish(second)[0], 0)
        code, _, errors = jobs.finish(first)
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"PE [23] on host |\(PE [23]\) is gone")  # it may still be joining


if __name__ == "__main__":
    unittest.main()
