# SPDX-License-Identifier: Apache-2.0
"""oshrun --stacks-on-timeout, and SIGUSR2 to oshrun: who waits where, and for whom."""

import contextlib
import os
import re
import signal
import unittest

from jobs.launcher import SECONDS, run, start_shells
from watched import WATCHED, end, jobs_of, wait_until_told, watched

WAIT = r"PE (\d) \(process \d+\): thread \d+ waits in shmem_barrier_all for PE 1, for \d+\.\d s"

# Two agents, both on this host.
HOSTS = ["--hosts", "one:1,other:2", "--remote-shell", "env HOST={}"]


def read_until(job, *patterns):
    """What the job writes to stderr, until it has all patterns, in any order."""
    text = ""
    while missing := [pattern for pattern in patterns if not re.search(pattern, text)]:
        line = job.stderr.readline().decode()
        assert line, f"no {missing!r} in {text!r}"
        text += line
    return text


def pid_of(job, wanted):
    (group,) = jobs_of(job.pid)
    (pid,) = [member["pid"] for member in group["members"] if member["rank"] == wanted]
    return pid


class StacksTest(unittest.TestCase):
    def check(self, text, waiters):
        self.assertEqual({int(rank) for rank in re.findall(WAIT, text)}, waiters, text)
        self.assertRegex(text, r"PE 1 \(process \d+\): thread \d+ does not wait in a call of memspan")
        for rank in waiters:
            self.assertRegex(text, rf"(?m)^PE {rank} thread \d+:   #\d+ \S*\(p?shmem_barrier_all\+0x[0-9a-f]+\)")
        self.assertRegex(text, r"(?m)^PE 1 thread \d+:   #\d+ \S+\(\S*\+0x[0-9a-f]+\)")
        # What is not exported has a name, too: the program's static functions and the library's own.
        self.assertRegex(text, r"(?m)^PE 1 thread \d+:   #\d+ observe_watched\(read_to_the_end\+0x[0-9a-f]+\)")
        self.assertRegex(text, r"(?m)^PE 1 thread \d+:   #\d+ observe_watched\(main\+0x[0-9a-f]+\)")
        self.assertNotRegex(text, r"libmemspan\S*\(\+0x")

    def test_the_one_who_never_comes_is_named(self):
        # Time enough to start on a busy machine; all at once, since all wait for its end.
        layouts = ([], ["--simulate-hosts", "2"], HOSTS)
        with contextlib.ExitStack() as running:
            jobs = [running.enter_context(watched(3, "--timeout", "10", "--stacks-on-timeout", *options)) for options in layouts]
            told = [job.communicate(timeout=SECONDS)[1].decode() for job in jobs]
        for options, job, errors in zip(layouts, jobs, told):
            with self.subTest(options=options):
                self.assertEqual(job.returncode, 124, errors)
                self.assertIn("still running: PE 0-2", errors)
                self.assertNotIn("no stacks of", errors)
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
        self.assertIn("no stacks of PE 0-1: not in the job, since shmem_init has not been called", errors.decode())

    def test_a_program_can_ignore_the_signal(self):
        with watched(2, mode="ignore") as job:
            job.send_signal(signal.SIGUSR2)
            read_until(job, "oshrun: no stacks of PE 0-1: SIGUSR2 is ignored\n")
            self.assertEqual(end(job), (0, ""))

    def test_a_program_can_keep_the_signal(self):
        with watched(2, mode="default") as job:
            job.send_signal(signal.SIGUSR2)
            _, errors = job.communicate(timeout=SECONDS)
            self.assertEqual(job.returncode, 128 + signal.SIGUSR2)
        self.assertRegex(errors.decode(), r"(?s)no stacks of PE 0-1: nothing handles SIGUSR2\n.*was killed by signal 12")

    def test_who_has_a_handler_of_its_own_is_told_by_oshrun(self):
        why = "the program has a handler of its own for SIGUSR2"
        for options, named in (([], ["0-2"]), (HOSTS, ["0", "1-2"])):
            with self.subTest(options=options), watched(3, *options, mode="handler") as job:
                job.send_signal(signal.SIGUSR2)
                text = "".join(read_until(job, "no stacks of PE") for _ in named)
                for ranks in named:
                    self.assertIn(f"oshrun: no stacks of PE {ranks}: {why}\n", text)
                self.assertEqual(end(job), (0, ""))

    def test_who_is_stopped_is_told_by_oshrun(self):
        with watched(2) as job:
            wait_until_told(job, 0)
            os.kill(pid_of(job, 1), signal.SIGSTOP)
            job.send_signal(signal.SIGUSR2)
            # PE 0 writes for itself, and may be later.
            read_until(job, "oshrun: no stacks of PE 1: stopped, as by SIGSTOP\n", WAIT)
            os.kill(pid_of(job, 1), signal.SIGCONT)
            self.assertIn("does not wait in a call of memspan", read_until(job, "PE 1 thread"))
            # It has answered the first request late, and answers this one.
            job.send_signal(signal.SIGUSR2)
            read_until(job, r"PE 1 \(process")  # the first line of an answer
            code, rest = end(job)
            self.assertEqual(code, 0)
            self.assertNotIn("no stacks of", rest)

    def test_when_the_time_is_over_who_is_silent_is_named_too(self):
        options = ("--timeout", "10", "--stacks-on-timeout")
        with watched(2, *options) as stopped, watched(3, *options, *HOSTS, mode="default") as unwilling:
            os.kill(pid_of(stopped, 1), signal.SIGSTOP)
            told = [job.communicate(timeout=SECONDS)[1].decode() for job in (stopped, unwilling)]
            self.assertEqual([stopped.returncode, unwilling.returncode], [124, 124])
        self.assertIn("oshrun: no stacks of PE 1: stopped, as by SIGSTOP\n", told[0])
        self.assertRegex(told[0], WAIT)
        for ranks in ("0", "1-2"):
            self.assertIn(f"oshrun: no stacks of PE {ranks}: nothing handles SIGUSR2\n", told[1])

    def test_it_needs_a_time(self):
        code, _, errors = run("-n", 1, "--stacks-on-timeout", WATCHED)
        self.assertEqual(code, 2)
        self.assertIn("--stacks-on-timeout needs --timeout S", errors)
