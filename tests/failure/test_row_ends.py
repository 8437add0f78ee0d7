# SPDX-License-Identifier: Apache-2.0
"""The rows themselves, where they meet a job that is over already."""

import os
import unittest
from unittest import mock

import jobs
from rows import finalize
from rows.sheet import Plan, Sheet


class OverAlready(unittest.TestCase):
    def test_a_peer_that_has_ended_is_not_slow(self):
        """Row 23: the first job is over before its peer is stopped, the second is not."""
        for launch in ("oshrun", "by hand"):
            plan = Plan(rounds=1, soak_s=0, seed=1, build=os.environ["MEMSPAN_BUILD"])
            sheet = Sheet(finalize.ROWS[0], plan)
            left = []

            def moment(_, ends, __, left=left):
                if not left:
                    left.append(ends.wait(30))

            with mock.patch.object(finalize, "random_moment", moment):
                with sheet.round(launch):
                    finalize.openshmem_slow(sheet, launch)
            self.assertEqual((left, sheet.failures), ([[]], []))
            self.assertEqual(jobs.end_all(sheet.mark), [])


if __name__ == "__main__":
    unittest.main()
