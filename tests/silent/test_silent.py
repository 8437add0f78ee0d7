# SPDX-License-Identifier: Apache-2.0
"""Every call that may block, with one process silent and alive. MEMSPAN_SILENT_FACE chooses the face."""

import concurrent.futures
import os
import unittest

from jobs_of_silence import Deafness, Finding, Silence, calls_of, make_call
from needs import needs

FACE = os.environ["MEMSPAN_SILENT_FACE"]
# They mostly wait.
AT_ONCE = 4 * os.cpu_count()


def expected_failures(situation):
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "far_path.txt")) as file:
        lines = [line.split() for line in file if line.strip() and not line.startswith("#")]
    return {call for face, where, call in lines if (face, where) == (FACE, situation)}


def finding_of(silence, call):
    """What is wrong, or nothing."""
    try:
        make_call(silence, FACE, call)
    except Finding as finding:
        return str(finding)
    return None


def findings_of_deaf(calls):
    """In a process of its own, and so on hosts of its own."""
    with Deafness() as silence:
        return [finding_of(silence, call) for call in calls]


class SilentTest(unittest.TestCase):
    def check(self, situation, findings):
        expected = expected_failures(situation)
        self.assertLessEqual(expected, set(findings), "far_path.txt has calls that are not made")
        wrong = {name: finding for name, finding in findings.items() if finding and name not in expected}
        self.assertFalse(wrong, "\n".join(f"{name}: {finding}" for name, finding in wrong.items()))
        self.assertEqual([name for name in sorted(expected) if not findings[name]], [],
                         "these work now: they have to leave far_path.txt")

    def check_all(self, situation, silence, calls):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            findings = pool.map(lambda call: finding_of(silence, call), calls)
        self.check(situation, dict(zip((call.name for call in calls), findings)))

    def test_near(self):
        """It is stopped, on the same host."""
        self.check_all("near", Silence(is_far=False), calls_of(FACE))

    def test_far(self):
        """It is stopped, on another host."""
        self.check_all("far", Silence(is_far=True), calls_of(FACE))

    def test_full(self):
        """As far, but nobody is ever given up as lost, and the connection to it is full."""
        # A thread that fills it uses the face until the end.
        calls = [call for call in calls_of(FACE) if FACE != "openshmem" or not call.is_end]
        self.check_all("full", Silence(is_far=True, is_full=True), calls)

    @needs("hosts")
    def test_deaf(self):
        """On a host that no packet reaches any more: it runs."""
        calls = calls_of(FACE)
        parts = [calls[first::AT_ONCE] for first in range(AT_ONCE)]
        with concurrent.futures.ProcessPoolExecutor(AT_ONCE) as pool:
            findings = {call.name: finding for part, found in zip(parts, pool.map(findings_of_deaf, parts))
                        for call, finding in zip(part, found)}
        self.check("deaf", findings)


if __name__ == "__main__":
    unittest.main()
