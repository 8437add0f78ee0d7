# SPDX-License-Identifier: Apache-2.0
"""A program with an error handler survives the death of a peer, and goes on without it."""

import os
import unittest

import jobs

SURVIVOR = os.environ["MEMSPAN_SURVIVOR"]
SHRINK = os.environ["MEMSPAN_SHRINK"]


class SurvivorTest(unittest.TestCase):
    def test_goes_on_in_a_team_of_the_living(self):
        before = jobs.traces()
        for _ in range(10):
            job = jobs.start([jobs.OSHRUN, "--keep-going", "--timeout", "30", "-n", "3", SURVIVOR])
            out, errors = job.communicate(timeout=60)
            self.assertEqual(sorted(out.split("\n")), ["", "survived 0", "survived 2"], errors)
            self.assertIn("PE 1 ", errors)
            self.assertEqual(job.returncode, 137, errors)
        self.assertEqual(jobs.traces(), before)

    def test_leaves_without_finalize(self):
        before = jobs.traces()
        # Without its cache malloc sees whatever is freed twice.
        strict = ["env", "GLIBC_TUNABLES=glibc.malloc.tcache_count=0"]
        for how in ("main", "thread", "handler"):
            for _ in range(3):
                with self.subTest(how):
                    job = jobs.start([*strict, jobs.OSHRUN, "--keep-going", "--timeout", "30", "-n", "3", SURVIVOR, how])
                    out, errors = job.communicate(timeout=60)
                    self.assertEqual(sorted(out.split("\n")), ["", "left 0", "left 2"], errors)
                    self.assertEqual(job.returncode, 137, errors)
                    self.assertNotIn("killed by signal 6", errors)
        self.assertEqual(jobs.traces(), before)

    def test_shrinks_until_one_is_left(self):
        before = jobs.traces()
        for seed in range(1, 16):
            job = jobs.start([jobs.OSHRUN, "--keep-going", "--timeout", "50", "-n", str(2 + seed % 6), SHRINK,
                              str(seed)])
            out, errors = job.communicate(timeout=60)
            self.assertEqual(out, "survived\n", f"seed {seed}: {errors}")
        self.assertEqual(jobs.traces(), before)

    def test_without_keep_going_the_launcher_ends_the_job(self):
        job = jobs.start([jobs.OSHRUN, "--timeout", "30", "-n", "3", SURVIVOR])
        job.communicate(timeout=60)
        self.assertEqual(job.returncode, 137)


if __name__ == "__main__":
    unittest.main()
