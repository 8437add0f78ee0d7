# SPDX-License-Identifier: Apache-2.0
"""oshrun --stacks-on-timeout, and SIGUSR2 to oshrun: who waits where, and for whom."""

import contextlib
import re
import signal
import unittest

from jobs.launcher import SECONDS, run, start_shells
from watched import WATCHED, end, wait_until_told, watched

WAIT = r"PE (\d) \(process \d+\): thread \d+ waits in shmem_barrier_all for PE 1, for \d+\.\d s"


class StacksTest(unittest.TestCase):
    def check(self, text, waiters):
        self.assertEqual({int(rank) for rank in re.findall(WAIT, text)}, waiters, text)
        self.assertRegex(text, r"PE 1 \(process \d+\): thread \d+ waits for nobody in memspan")
        for rank in waiters:
            self.assertRegex(text, rf"(?m)^PE {rank} thread \d+:   #\d+ \S*\(p?shmem_barrier_all\+0x[0-9a-f]+\)")
        self.assertRegex(text, r"(?m)^PE 1 thread \d+:   #\d+ \S+\(\S*\+0x[0-9a-f]+\)")

    def test_the_one_who_never_comes_is_named(self):
        # Time enough to start on a busy machine; both at once, since both wait for its end.
        layouts = ([], ["--simulate-hosts", "2"])
        with contextlib.ExitStack() as running:
            jobs = [running.enter_context(watched(3, "--timeout", "10", "--stacks-on-timeout", *options)) for options in layouts]
            told = [job.communicate(timeout=SECONDS)[1].decode() for job in jobs]
        for options, job, errors in zip(layouts, jobs, told):
            with self.subTest(options=options):
                self.assertEqual(job.returncode, 124, errors)
                self.assertIn("still running: PE 0-2", errors)
                if options:
                    self.assertRegex(errors, r"PE 2 .* waits in shmem_barrier_all for PE \d")
                else:
                    self.check(errors, {0, 2})

    def test_a_signal_to_oshrun_asks_a_job_that_goes_on(self):
        with watched(3) as job:
            text = ""
            wait_until_told(job, 0, 2)
            job.send_signal(signal.SIGUSR2)
            while len(re.findall(r"(?m)^PE \d \(", text)) < 3 or not re.search(WAIT, text):
                line = job.stderr.readline().decode()
                self.assertNotEqual(line, "", text)
                text += line
            self.assertIsNone(job.poll())
            code, rest = end(job)
            self.assertEqual(code, 0, text + rest)
            self.assertRegex(text + rest, r"(?m)^PE \d thread \d+:   #\d+ ")

    def test_a_shell_around_a_process_is_not_ended(self):
        with watched(2, shell=True) as job:
            job.send_signal(signal.SIGUSR2)
            text = ""
            while len(re.findall(r"(?m)^PE \d \(", text)) < 2:
                line = job.stderr.readline().decode()
                self.assertNotEqual(line, "", text)
                text += line
            code, rest = end(job)
            self.assertEqual(code, 0, text + rest)

    def test_who_has_not_joined_is_told_by_oshrun(self):
        job = start_shells(2, "exec sleep 60", "--timeout", "0.5", "--stacks-on-timeout")
        _, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 124)
        self.assertIn("not in the job, since shmem_init has not been called: PE 0-1", errors.decode())

    def test_a_program_can_keep_the_signal(self):
        with watched(2, MEMSPAN_STACKS="0") as job:
            job.send_signal(signal.SIGUSR2)
            self.assertEqual(job.wait(SECONDS), 128 + signal.SIGUSR2)

    def test_it_needs_a_time(self):
        code, _, errors = run("-n", 1, "--stacks-on-timeout", WATCHED)
        self.assertEqual(code, 2)
        self.assertIn("--stacks-on-timeout needs --timeout S", errors)
