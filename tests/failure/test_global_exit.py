# SPDX-License-Identifier: Apache-2.0
"""shmem_global_exit ends all processes with its code, whatever they do."""

import unittest

import jobs


class GlobalExitTest(unittest.TestCase):
    def test_under_oshrun(self):
        for what in ("global-exit", "compute-exit", "read-exit"):
            for ranks in (1, 2, 4):
                with self.subTest(what=what, ranks=ranks):
                    watch = jobs.Stopwatch()
                    code, out, errors = jobs.finish(jobs.oshrun(ranks, what, "7"))
                    self.assertEqual(code, 7, errors)
                    self.assertIn("text that is still in a buffer", out)
                    self.assertLess(watch.seconds(), 10)

    def test_by_hand(self):
        for what in ("global-exit", "compute-exit", "read-exit"):
            with self.subTest(what):
                for process in jobs.by_hand(3, what, "7"):
                    code, _, errors = jobs.finish(process)
                    self.assertEqual(code, 7, errors)

    def test_a_process_that_ends_without_finalising_is_named(self):
        code, _, errors = jobs.finish(jobs.oshrun(3, "exit-early"))
        self.assertEqual(code, 5, errors)
        self.assertIn("PE 2", errors)


if __name__ == "__main__":
    unittest.main()
