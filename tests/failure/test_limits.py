# SPDX-License-Identifier: Apache-2.0
"""Too little memory is an error with numbers, found without filling the machine."""

import os
import unittest

import jobs


class LimitsTest(unittest.TestCase):
    def test_a_heap_larger_than_memory_names_both_sizes(self):
        job = jobs.oshrun(2, "hello", SHMEM_SYMMETRIC_SIZE="8g", MEMSPAN_MEMORY_LIMIT="1g")
        code, _, errors = jobs.finish(job)
        self.assertNotEqual(code, 0)
        self.assertIn("8 GiB", errors)
        self.assertIn("1 GiB", errors)

    def test_a_wrong_size_is_an_error(self):
        for size in ("lots", "0", "-5", "nan"):
            code, _, errors = jobs.finish(jobs.oshrun(1, "hello", SHMEM_SYMMETRIC_SIZE=size))
            self.assertNotEqual(code, 0)
            self.assertIn(f'SHMEM_SYMMETRIC_SIZE is "{size}"', errors)

    def test_sixty_four_heaps_of_a_gigabyte_cost_nothing_until_used(self):
        code, out, errors = jobs.finish(jobs.oshrun(64, "hello", SHMEM_SYMMETRIC_SIZE="1g"))
        self.assertEqual(code, 0, errors)
        self.assertEqual(out.count(" of 64"), 64)

    @unittest.skipUnless(os.geteuid() == 0, "mounting a small /dev/shm needs root")
    def test_a_small_dev_shm_does_not_matter(self):
        command = 'mount -t tmpfs -o size=1m none /dev/shm && exec "$@"'
        job = jobs.start(
            ["unshare", "-m", "sh", "-c", command, "sh", jobs.OSHRUN, "-n", "2", jobs.UNITTEST, "--gtest_filter=Heap*"]
        )
        code, out, errors = jobs.finish(job)
        self.assertEqual(code, 0, out + errors)


if __name__ == "__main__":
    unittest.main()
