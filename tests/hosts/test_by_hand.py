# SPDX-License-Identifier: Apache-2.0
"""Jobs without a launcher whose processes are on several hosts, by MEMSPAN_HOST_ID."""

import os
import signal
import unittest

import jobs

FAR = os.environ["MEMSPAN_FAR"]
BOUND_S = 2.0


def by_hand(hosts, *command, **environment):
    """A process for each host that is named."""
    meeting = {"WORLD_SIZE": str(len(hosts)), "MASTER_ADDR": "127.0.0.1",
               "MASTER_PORT": str(jobs.free_port())}
    return [jobs.start(list(command), **{**meeting, "RANK": str(rank), "MEMSPAN_HOST_ID": host,
                                         "LOCAL_WORLD_SIZE": str(hosts.count(host)), **environment})
            for rank, host in enumerate(hosts)]


class ByHandTest(unittest.TestCase):
    def expect_well(self, processes):
        for rank, (code, out, errors) in enumerate(jobs.finish(process) for process in processes):
            self.assertEqual((code, errors), (0, ""), f"rank {rank}: {out}{errors}")

    def test_hosts_of_all_shapes_meet(self):
        for hosts in ("ab", "aab", "abb", "abab", "abcb"):
            with self.subTest(hosts=hosts):
                processes = by_hand(hosts, jobs.VICTIM, "hello")
                for rank, process in enumerate(processes):
                    code, out, errors = jobs.finish(process)
                    self.assertEqual((code, out), (0, f"hello {rank} of {len(hosts)}\n"), errors)

    def test_ranks_of_a_host_need_not_follow_each_other(self):
        for case in ("pointers", "statics"):
            with self.subTest(case=case):
                self.expect_well(by_hand("abba", FAR, case))

    def test_a_far_process_that_computes_is_served(self):
        self.expect_well(by_hand("aab", FAR, "compute"))

    def test_a_whole_suite(self):
        processes = by_hand("abb", jobs.UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*:Wait*:Static*")
        for process in processes:
            code, out, errors = jobs.finish(process)
            self.assertEqual(code, 0, out[-2000:] + errors)

    def test_a_death_is_told_to_all_nodes(self):
        # The leader of the first node, a member there, the only one of the second.
        for victim in (0, 1, 2):
            with self.subTest(victim=victim):
                processes = by_hand("aab", jobs.VICTIM, "busy")
                pids = {}
                for process in processes:
                    pids.update(jobs.read_ready(process.stdout, 1))
                os.kill(pids[victim], signal.SIGKILL)
                watch = jobs.Stopwatch()
                told = ""
                for rank, process in enumerate(processes):
                    code, _, errors = jobs.finish(process)
                    if rank == victim:
                        continue
                    self.assertEqual(code, 1, errors)
                    # It may see first that another one ended because of that death.
                    self.assertRegex(errors, r"PE \d on host [ab]")
                    told += errors
                self.assertIn(f"PE {victim} on host {'aab'[victim]}", told)
                self.assertLess(watch.seconds(), BOUND_S)

    def test_global_exit_ends_all_nodes(self):
        for what in ("global-exit", "compute-exit"):
            with self.subTest(what=what):
                processes = by_hand("aabb", jobs.VICTIM, what, "7")
                codes = [jobs.finish(process)[0] for process in processes]
                self.assertEqual(codes[1], 7)
                self.assertTrue(all(code != 0 for code in codes), codes)

    def test_no_transport_in_common_names_pes_hosts_and_reasons(self):
        processes = by_hand("ab", jobs.VICTIM, "hello", MEMSPAN_TRANSPORT="mapped")
        for rank, process in enumerate(processes):
            code, _, errors = jobs.finish(process)
            self.assertNotEqual(code, 0)
            for part in ("PE 0 on host a", "PE 1 on host b", "mapped: they are on different hosts",
                         "message: MEMSPAN_TRANSPORT does not allow it"):
                self.assertIn(part, errors)


if __name__ == "__main__":
    unittest.main()
