# SPDX-License-Identifier: Apache-2.0
"""Simulated hosts: what the processes are told, and what is refused."""
import os
import unittest

from jobs.launcher import environment, run

INFO = os.environ["MEMSPAN_INFO"]

TOLD = 'echo "$RANK $LOCAL_RANK $LOCAL_WORLD_SIZE $MEMSPAN_HOST_ID"'


class HostsTest(unittest.TestCase):
    def outputs(self, *words):
        code, out, errors = run(*words)
        self.assertEqual(code, 0, errors)
        return out.splitlines()

    def test_each_process_is_told_its_place_on_its_host(self):
        for hosts, expected in (
            ("2", ["0 0 2 sim-0", "1 1 2 sim-0", "2 0 2 sim-1", "3 1 2 sim-1"]),
            ("3+1", ["0 0 3 sim-0", "1 1 3 sim-0", "2 2 3 sim-0", "3 0 1 sim-1"]),
            ("1+3", ["0 0 1 sim-0", "1 0 3 sim-1", "2 1 3 sim-1", "3 2 3 sim-1"]),
            ("1", ["0 0 4 ", "1 1 4 ", "2 2 4 ", "3 3 4 "]),
        ):
            with self.subTest(hosts=hosts):
                out = self.outputs("-n", "4", "--simulate-hosts", hosts, "sh", "-c", TOLD)
                self.assertEqual(sorted(out), expected)

    def test_several_programs_are_spread_together(self):
        out = self.outputs("-n", "1", "--simulate-hosts", "2", "sh", "-c", TOLD, ":",
                           "-n", "2", "sh", "-c", TOLD)
        self.assertEqual(sorted(out), ["0 0 2 sim-0", "1 1 2 sim-0", "2 0 1 sim-1"])

    def test_a_variable_says_it_for_every_job(self):
        def told(count, value, *words):
            code, out, errors = run("-n", count, *words, "sh", "-c", "echo $MEMSPAN_HOST_ID",
                                    env=environment(MEMSPAN_SIMULATE_HOSTS=value))
            return (code, sorted(out.split()), "" if code == 0 else errors)
        self.assertEqual(told("3", "2"), (0, ["sim-0", "sim-0", "sim-1"], ""))
        self.assertEqual(told("1", "2"), (0, [], ""))
        self.assertEqual(told("2", "2", "--simulate-hosts", "1"), (0, [], ""))
        code, out, errors = told("2", "0")
        self.assertEqual((code, out), (2, []))
        self.assertIn("MEMSPAN_SIMULATE_HOSTS", errors)

    def test_what_does_not_fit_is_one_line(self):
        for hosts, why in (("5", "there are only 4 processes (-n)"), ("0", "a number of hosts"),
                           ("2+1", "which makes 3 processes, and -n says 4"), ("x", "a number of hosts"),
                           ("2+0+2", "a number of hosts")):
            with self.subTest(hosts=hosts):
                code, out, errors = run("-n", "4", "--simulate-hosts", hosts, "echo", "has run")
                self.assertEqual((code, out), (2, ""))
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertIn(why, errors)
                self.assertIn(hosts, errors)

    def test_routes_say_which_transport_and_why(self):
        table = self.outputs("-n", "3", "--simulate-hosts", "2+1", INFO, "--routes")
        rows = [line.split() for line in table]
        self.assertEqual(table[0], "3 PEs on 2 nodes")
        self.assertEqual(rows[2], ["0", "sim-0", "own", "mapped", "message"])
        self.assertEqual(rows[3], ["1", "sim-0", "mapped", "own", "message"])
        self.assertEqual(rows[4], ["2", "sim-1", "message", "message", "own"])
        self.assertTrue(any(line.startswith("mapped: ") for line in table), table)
        self.assertTrue(any(line.startswith("message: ") for line in table), table)

    def test_routes_of_one_host_and_of_no_job(self):
        rows = [line.split() for line in self.outputs("-n", "2", INFO, "--routes")]
        self.assertEqual(rows[0][:5], ["2", "PEs", "on", "1", "node"])
        self.assertEqual(rows[2][-2:], ["own", "mapped"])

    def test_one_transport_for_all_pes_of_a_host(self):
        code, _, errors = run("--timeout", "20", "-n", "1", INFO, "--routes", ":",
                              "-n", "1", "--env", "MEMSPAN_TRANSPORT=message", INFO, "--routes")
        self.assertNotIn(code, (0, 124), errors)
        self.assertRegex(errors, 'by MEMSPAN_TRANSPORT this process reaches the PEs of its host by "(mapped|message)" '
                                 'and another one of the job by "(mapped|message)"; all must have the same')

    def test_no_transport_in_common_names_both_and_why(self):
        code, out, errors = run("-n", "2", "--simulate-hosts", "2", "--env", "MEMSPAN_TRANSPORT=mapped",
                                INFO, "--routes")
        self.assertNotEqual(code, 0)
        for part in ("PE 0 on host sim-0", "PE 1 on host sim-1", "mapped: they are on different hosts",
                     "message: MEMSPAN_TRANSPORT does not allow it"):
            self.assertIn(part, errors)
