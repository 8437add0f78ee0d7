# SPDX-License-Identifier: Apache-2.0
"""Which cores the processes have."""

import os
import unittest

from jobs.launcher import run, strangers
from needs import needs

WORDS = ("grep", "Cpus_allowed_list:", "/proc/self/status")
CORES = sorted(os.sched_getaffinity(0))


def masks(ranks, *options, **more):
    code, out, errors = run("-n", ranks, *options, *WORDS, env=strangers(), **more)
    assert code == 0, errors
    return [line.split()[1] for line in out.splitlines()]


class BindingTest(unittest.TestCase):
    @needs("two_cores")
    def test_each_has_a_core_of_its_own(self):
        got = masks(2)
        self.assertEqual(len(set(got)), 2, got)
        for mask in got:
            self.assertTrue(mask.isdigit(), mask)
        # Within the launcher's own mask.
        last = CORES[-1]
        self.assertEqual(masks(1, preexec_fn=lambda: os.sched_setaffinity(0, [last])), [str(last)])

    def test_too_few_cores(self):
        ranks = len(CORES) + 1
        code, _, errors = run("-n", ranks, "--bind", "core", "true", env=strangers())
        self.assertEqual(code, 2)
        self.assertIn(f"{ranks} processes on {len(CORES)} cores", errors)
        self.assertEqual(len(set(masks(ranks))), 1)

    def test_refused_by_the_system(self):
        filtered = [os.environ["MEMSPAN_WITHOUT_SYSCALLS"], "sched_setaffinity"]
        self.assertEqual(len(set(masks(1, before=filtered))), 1)
        code, _, errors = run("-n", 1, "--bind", "core", "true", env=strangers(), before=filtered)
        self.assertEqual(code, 1)
        self.assertIn("sched_setaffinity (Operation not permitted)", errors)

    def test_none(self):
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            own = [line.split()[1] for line in status if line.startswith(WORDS[1])]
        self.assertEqual(masks(1, "--bind", "none"), own)
