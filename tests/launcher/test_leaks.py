# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job have open, and what a job leaves."""

import os
import resource
import unittest

from jobs.launcher import run, run_shells, strangers

# The node's segment, the heaps, and its own socket to the store.
OURS = 3
COUNT_OURS = "ls -l /proc/$$/fd | grep -c -e memfd:memspan -e socket:"


class DescriptorsTest(unittest.TestCase):
    def test_each_has_three_more_than_a_plain_process(self):
        code, out, _ = run_shells(3, COUNT_OURS, shell="bash")
        self.assertEqual((code, out.split()), (0, [str(OURS)] * 3))
        code, out, _ = run("-n", "3", "--label", "ls", "-1", "/proc/self/fd", env=strangers())
        self.assertEqual(code, 0)
        plain = 4  # the three standard ones, and the folder that ls reads
        for rank in range(3):
            count = sum(line.startswith(f"[{rank}]") for line in out.splitlines())
            self.assertEqual(count, plain + OURS, out)

    def test_their_numbers_are_high(self):
        code, out, _ = run_shells(2, f"exec 3>/dev/null 9>/dev/null; {COUNT_OURS}", shell="bash")
        self.assertEqual((code, out.split()), (0, [str(OURS)] * 2))

    def test_the_limit(self):
        def limit(soft, hard):
            return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        # The launcher raises its own limit as far as it may, and the processes get theirs back.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        code, out, errors = run_shells(60, "ulimit -Sn", preexec_fn=limit(40, hard))
        self.assertEqual((code, set(out.split())), (0, {"40"}), errors)
        code, _, errors = run("-n", "60", "--label", "true", env=strangers(), preexec_fn=limit(150, 150))
        self.assertEqual(code, 1)
        line = r"60 processes need \d+ open files in the launcher, and the limit is 150 \(ulimit -Hn\)"
        self.assertRegex(errors, rf"^oshrun: {line} \[memspan-explain too-few-open-files\]\n$")


class FilesTest(unittest.TestCase):
    def test_nothing_stays_in_dev_shm(self):
        before = set(os.listdir("/dev/shm"))
        self.assertEqual(run_shells(2, "kill -KILL $$")[0], 137)
        self.assertEqual(run("-n", "2", "true", env=strangers())[0], 0)
        # Others may use /dev/shm meanwhile: only what bears our name counts.
        left = [name for name in set(os.listdir("/dev/shm")) - before if "memspan" in name]
        self.assertEqual(left, [])
