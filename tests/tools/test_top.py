# SPDX-License-Identifier: Apache-2.0
"""memspan-top: which rows and groups a name or a process number leaves, and what it refuses."""

import json
import os
import subprocess
import time
import unittest

from jobs.launcher import environment

TOP = os.environ["MEMSPAN_TOP"]
OSHRUN = os.environ["MEMSPAN_OSHRUN"]
PERF = os.environ["MEMSPAN_PERF"]
LIMIT_S = 60


def top(*words, **more):
    """(code, stdout, stderr)"""
    ended = subprocess.run([TOP, *map(str, words)], stdout=more.get("stdout", subprocess.PIPE), stderr=subprocess.PIPE, text=True,
                           timeout=LIMIT_S, check=False, env=environment())
    return ended.returncode, ended.stdout, ended.stderr


def seen(*words):
    """The groups of a look."""
    return json.loads(top("--once", "--json", "--interval", "0", *words)[1])["groups"]


class OnlyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """A job of three that measures until it is ended."""
        cls.job = subprocess.Popen([OSHRUN, "-n", "3", PERF, "barrier", "--seconds", "600", "--samples", "1000000"],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment())
        cls.addClassCleanup(cls.job.wait)
        cls.addClassCleanup(cls.job.terminate)
        end = time.monotonic() + LIMIT_S
        while not (group := cls.whole_group()):
            assert time.monotonic() < end and cls.job.poll() is None, "the job is not seen"
            time.sleep(0.05)
        cls.group = group

    @classmethod
    def whole_group(cls):
        """The job's, as soon as all three are seen in it."""
        for group in seen():
            pids = [member["pid"] for member in group["members"] if "threads" in member]
            if group["size"] == 3 and len(pids) == 3 and all(cls.is_ours(pid) for pid in pids):
                return group
        return None

    @classmethod
    def is_ours(cls, pid):
        """oshrun starts them through an agent."""
        while pid > 1:
            if pid == cls.job.pid:
                return True
            with open(f"/proc/{pid}/stat") as file:
                pid = int(file.read().rsplit(")", 1)[1].split()[1])
        return False

    def test_a_process_alone(self):
        pid = self.group["members"][1]["pid"]
        groups = seen(pid)
        self.assertEqual([group["name"] for group in groups], [self.group["name"]])
        self.assertEqual([(member["rank"], member["pid"]) for member in groups[0]["members"]], [(1, pid)])
        self.assertIn(groups[0]["members"][0]["state"], ("runs", "sleeps", "waits"))
        self.assertIn("3 of 3 members seen here", top("--once", "--interval", "0", pid)[1])

    def test_a_job_by_its_name(self):
        groups = seen(self.group["name"])
        self.assertEqual([[member["rank"] for member in group["members"]] for group in groups], [[0, 1, 2]])

    def check_nobody_is(self, name, *words):
        for form in ([], ["--json"]):
            with self.subTest(form):
                code, out, errors = top("--once", "--interval", "0", *form, *words)
                self.assertEqual((code, out), (1, ""))
                self.assertIn(f'no job, pool, endpoint or member process "{name}"; there are ', errors)
                self.assertIn(f"job {self.group['name']}", errors)

    def test_words_behind_two_dashes_are_names(self):
        self.check_nobody_is("-no-such-job", "--", "-no-such-job")

    def test_nobody_has_that_name(self):
        self.check_nobody_is("no-such-job", "no-such-job")
        self.check_nobody_is(os.getpid(), os.getpid())


class UseTest(unittest.TestCase):
    def test_what_metrics_do_not_use_is_refused(self):
        for words in (("NAME",), ("--interval", "2"), ("--sort", "calls")):
            with self.subTest(words):
                code, out, errors = top("--metrics", "127.0.0.1:0", *words)
                self.assertEqual((code, out), (2, ""))
                self.assertIn("--metrics", errors)

    def test_output_that_fails_is_told(self):
        for words in (("--once", "--interval", "0"), ("--json", "--interval", "0.1"), ("--metrics", "127.0.0.1:0"), ("--help",)):
            with self.subTest(words), open("/dev/full", "w") as full:
                code, _, errors = top(*words, stdout=full)
                self.assertEqual(code, 1)
                self.assertIn("writing to stdout: No space left", errors)


if __name__ == "__main__":
    unittest.main()
