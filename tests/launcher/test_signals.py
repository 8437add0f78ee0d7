# SPDX-License-Identifier: Apache-2.0
"""Signals to the launcher, and its sudden end."""

import os
import signal
import unittest

from jobs.launcher import SECONDS, all_end, read_lines, start_shells, strangers, until

FOR_EVER = "while :; do sleep 0.02; done"


class SignalsTest(unittest.TestCase):
    def ends(self, job, code):
        """What it still said."""
        out, errors = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, code, errors)
        return out.decode().splitlines(), errors.decode()

    def test_they_are_passed_on(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                job = start_shells(2, f"trap 'echo got; exit 0' {number.name[3:]}; echo ready; {FOR_EVER}")
                read_lines(job.stdout, 2)
                job.send_signal(number)
                self.assertEqual(self.ends(job, 0)[0], ["got", "got"])
        job = start_shells(2, f"trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; {FOR_EVER}")
        read_lines(job.stdout, 2)
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(read_lines(job.stdout, 2), ["one", "one"])
        job.send_signal(signal.SIGUSR2)
        self.ends(job, 0)

    def test_without_a_handler_they_end_the_job(self):
        job = start_shells(2, "echo ready; exec sleep 60")
        read_lines(job.stdout, 2)
        job.terminate()
        self.assertEqual(self.ends(job, 143)[1], "oshrun: the job was ended by signal 15 (Terminated)\n")

    def test_the_second_one_ends_a_job_that_ignores_them(self):
        job = start_shells(2, f'trap "" TERM; echo $$; {FOR_EVER}')
        pids = read_lines(job.stdout, 2)
        job.terminate()
        with self.assertRaises(Exception):
            job.wait(0.3)
        job.terminate()
        self.ends(job, 143)
        all_end(0, pids)

    def test_what_was_ignored_stays_ignored(self):
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)

        job = start_shells(1, "echo ready; read line; echo done", stdin=-1, preexec_fn=ignore)
        read_lines(job.stdout, 1)
        job.send_signal(signal.SIGHUP)
        job.stdin.write(b"go on\n")
        job.stdin.close()
        job.stdin = None
        self.assertEqual(self.ends(job, 0)[0], ["done"])


class SuddenEndTest(unittest.TestCase):
    def ends_with_the_launcher(self, script, lines):
        job = start_shells(lines[0], script)
        pids = read_lines(job.stdout, lines[1])
        job.kill()
        all_end(2, pids)
        job.communicate()

    def test_a_killed_launcher_takes_its_processes_along(self):
        self.ends_with_the_launcher("echo $$; exec sleep 60", (4, 4))

    def test_and_what_they_have_started(self):
        self.ends_with_the_launcher("echo $$; sleep 60 & echo $!; wait", (2, 4))
