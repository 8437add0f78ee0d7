# SPDX-License-Identifier: Apache-2.0
"""Wrong calls end with one line that names the call, the argument and what is allowed."""

import unittest

import jobs

CASES = {
    "pe-too-large": ["shmem_long_p", "2", "0 to 1"],
    "pe-negative": ["shmem_long_g", "-1", "0 to 1"],
    "local-address": ["shmem_long_p", "symmetric"],
    "past-the-end": ["shmem_putmem", "1099511627776"],
    "size-overflow": ["shmem_long_put"],
    "free-interior": ["shmem_free", "allocated"],
    "free-twice": ["shmem_free", "allocated"],
    "bad-comparison": ["shmem_long_wait_until", "17"],
    "sync-not-set": ["shmem_broadcast64", "pSync[0] is -1", "SHMEM_SYNC_VALUE, 0"],
    "before-init": ["shmem_barrier_all", "shmem_init"],
    "after-finalize": ["shmem_long_p", "shmem_init"],
}

# What members of a collective give that is not alike, and what the line says.
UNLIKE = {
    "other-count": ["shmem_long_sum_reduce", "nreduce is", "all members"],
    "other-root": ["shmem_broadcastmem", "PE_root is", "all members"],
    "other-place": ["shmem_alltoallmem", "dest", "all members"],
    "other-end": ["shmem_barrier_all", "PE 1", "called shmem_finalize"],
    "other-call": ["shmem_sync_all", "shmem_barrier_all", "same order"],
}


class MisuseTest(unittest.TestCase):
    def test_each_wrong_call_is_named(self):
        for what, words in CASES.items():
            with self.subTest(what):
                code, _, errors = jobs.finish(jobs.oshrun(2, what))
                self.assertNotEqual(code, 0)
                lines = [line for line in errors.splitlines() if line.startswith("memspan:")]
                self.assertTrue(lines, errors)
                for word in words:
                    self.assertIn(word, lines[0])

    def test_debugging_names_what_members_do_not_give_alike(self):
        for what, words in UNLIKE.items():
            with self.subTest(what):
                code, _, errors = jobs.finish(jobs.oshrun(2, what, SHMEM_DEBUG="1"))
                self.assertNotEqual(code, 0)
                lines = [line for line in errors.splitlines() if words[-1] in line]
                self.assertTrue(lines, errors)
                for word in words:
                    self.assertIn(word, lines[0])

    def test_sizes_that_differ_end_the_job_and_both_are_named(self):
        code, _, errors = jobs.finish(jobs.oshrun(2, "asymmetric-sizes"))
        self.assertNotEqual(code, 0)
        self.assertIn("the size is 100 here and 200 on PE 1", errors)
        self.assertIn("the size is 200 here and 100 on PE 0", errors)


if __name__ == "__main__":
    unittest.main()
