# SPDX-License-Identifier: Apache-2.0
"""How jobs on simulated hosts end: deaths, global exits, ends without finalize, exec."""

import os
import signal
import unittest

import jobs

BOUND_S = 2.0


def oshrun(ranks, hosts, *arguments, **environment):
    return jobs.start([jobs.OSHRUN, "-n", str(ranks), "--simulate-hosts", hosts, "--timeout",
                       str(jobs.LIMIT_S), *arguments], **environment)


class EndsTest(unittest.TestCase):
    def setUp(self):
        self.before = jobs.traces()

    def tearDown(self):
        self.assertEqual(jobs.traces(), self.before)

    def test_a_killed_process_is_named_with_its_host_on_all_nodes(self):
        for victim, host in ((0, "sim-0"), (2, "sim-0"), (3, "sim-1")):
            with self.subTest(victim=victim):
                job = oshrun(4, "3+1", jobs.VICTIM, "busy")
                pids = jobs.read_ready(job.stdout, 4)
                os.kill(pids[victim], signal.SIGKILL)
                watch = jobs.Stopwatch()
                code, _, errors = jobs.finish(job)
                self.assertLess(watch.seconds(), BOUND_S)
                self.assertEqual(code, 128 + signal.SIGKILL, errors)
                self.assertIn(f"PE {victim} (process {pids[victim]}) was killed by signal 9", errors)
                self.assertRegex(errors, rf"PE \d+: shmem_\w+: .*PE {victim} on host {host}")
                for pid in pids.values():
                    self.assertFalse(jobs.is_alive(pid))

    def test_global_exit_is_the_code_of_the_job(self):
        for what in ("global-exit", "compute-exit"):
            with self.subTest(what=what):
                code, _, errors = jobs.finish(oshrun(4, "1+3", jobs.VICTIM, what, "7"))
                self.assertEqual(code, 7, errors)

    def test_an_end_without_finalize_is_named(self):
        code, _, errors = jobs.finish(oshrun(4, "2", jobs.VICTIM, "exit-early"))
        self.assertEqual(code, 5, errors)
        self.assertIn("PE 3", errors)

    def test_a_proper_end_says_nothing(self):
        code, out, errors = jobs.finish(oshrun(4, "1+1+2", jobs.VICTIM, "hello"))
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(sorted(out.splitlines()), [f"hello {rank} of 4" for rank in range(4)])


if __name__ == "__main__":
    unittest.main()
