# SPDX-License-Identifier: Apache-2.0
"""What a job's end becomes: oshrun's code and its one line, and what is left of the processes."""

import subprocess
import time
import unittest

from jobs.launcher import OSHRUN, SECONDS, all_end, run, run_shells, strangers

LONGEST_END_S = 3


class ResultTest(unittest.TestCase):
    def fails(self, code, line, script, ranks=3):
        """The job ends with this code and one line, that matches."""
        got, _, errors = run_shells(ranks, script)
        self.assertEqual(got, code, errors)
        self.assertRegex(errors, rf"^oshrun: {line}( \[memspan-explain [a-z-]+\])?\n$")

    def test_an_exit_code_is_the_jobs(self):
        self.assertEqual(run("-n", "3", "true", env=strangers()), (0, "", ""))
        self.fails(3, r"PE 1 \(process \d+\) exited with code 3", "test $RANK != 1 || exit 3")

    def test_a_signal_is_named(self):
        kills = "test $RANK != {} || kill -{} $$; sleep 30"
        self.fails(137, r"PE 2 \(process \d+\) was killed by signal 9 \(Killed\)", kills.format(2, "KILL"))
        line = r"PE 0 \(process \d+\) was killed by signal 11 \(Segmentation fault\)"
        self.fails(139, line, kills.format(0, "SEGV"), ranks=2)

    def test_only_the_first_failure_is_told(self):
        script = "case $RANK in 0) exit 5;; 1) sleep 0.2; exit 6;; *) sleep 30;; esac"
        self.fails(5, r"PE 0 \(process \d+\) exited with code 5", script)

    def test_survivors_are_killed(self):
        began = time.monotonic()
        script = 'test $RANK != 0 || exit 4; trap "" TERM; echo $$; while :; do sleep 0.05; done'
        code, out, _ = run_shells(3, script)
        self.assertEqual(code, 4)
        self.assertLess(time.monotonic() - began, LONGEST_END_S)
        all_end(0, out.split())

    def test_what_a_wrapper_leaves_behind_ends_with_it(self):
        code, out, _ = run_shells(2, "sleep 60 & echo $!", shell="bash")
        self.assertEqual(code, 0)
        all_end(5, out.split())

    def test_many_processes(self):
        code, out, errors = run_shells(64, "echo $RANK")
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(map(int, out.split())), list(range(64)))

    def test_a_time_out(self):
        began = time.monotonic()
        script = 'test $RANK != 1 || exit 0; trap "" TERM; while :; do sleep 0.05; done'
        code, _, errors = run_shells(3, script, "--timeout", "0.5")
        took = time.monotonic() - began
        line = "oshrun: the job did not end within 0.5 s (--timeout); still running: PE 0, 2 [memspan-explain job-timeout]\n"
        self.assertEqual((code, errors), (124, line))
        self.assertTrue(0.5 <= took < LONGEST_END_S, took)

    def test_a_time_out_that_is_not_reached(self):
        self.assertEqual(run("-n", "2", "--timeout", "30", "true", env=strangers()), (0, "", ""))

    def test_closed_standard_descriptors(self):
        closed = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
        job = [OSHRUN, "-n", "2", "sh", "-c", "exit 6"]
        self.assertEqual(subprocess.run([*closed, *job], env=strangers(), timeout=SECONDS).returncode, 6)
