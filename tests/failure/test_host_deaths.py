# SPDX-License-Identifier: Apache-2.0
"""Deaths and ends in jobs on simulated hosts: PEs of other hosts learn of them, too."""

import os
import random
import signal
import unittest

import jobs

SURVIVOR = os.environ["MEMSPAN_SURVIVOR"]
SHRINK = os.environ["MEMSPAN_SHRINK"]
ROUNDS = int(os.environ.get("MEMSPAN_HOST_KILL_ROUNDS", "8"))
SEED = int(os.environ.get("MEMSPAN_SEED", "20240817"))
BOUND_S = 1.0


def oshrun(ranks, hosts, program, *arguments, options=()):
    return jobs.start([jobs.OSHRUN, "-n", str(ranks), "--simulate-hosts", hosts, "--timeout", "50", *options,
                       program, *arguments])


class HostDeathsTest(unittest.TestCase):
    def setUp(self):
        self.before = jobs.traces()

    def tearDown(self):
        self.assertEqual(jobs.traces(), self.before)

    def test_a_killed_process_ends_the_calls_of_all_hosts(self):
        chance = random.Random(SEED)
        for i in range(ROUNDS):
            ranks, hosts = [(2, "2"), (4, "2"), (4, "3+1"), (3, "3")][i % 4]
            with self.subTest(hosts=hosts, round=i):
                job = oshrun(ranks, hosts, jobs.VICTIM, "busy")
                pids = jobs.read_ready(job.stdout, ranks)
                rank = chance.choice(sorted(pids))
                os.kill(pids[rank], signal.SIGKILL)
                watch = jobs.Stopwatch()
                with jobs.Ends(pids.values()) as ends:
                    self.assertEqual(ends.wait(BOUND_S), [], "survivors are still there")
                code, _, errors = jobs.finish(job)
                self.assertLess(watch.seconds(), BOUND_S)
                self.assertEqual(code, 128 + signal.SIGKILL, errors)
                # Who waits for its answer learns it from the connection, often before it is told.
                self.assertRegex(errors, rf"shmem_\w+: .*PE {rank} on host sim-\d.*(died|was cut)", errors)

    def test_global_exit_ends_all_hosts(self):
        for what in ("global-exit", "compute-exit"):
            for ranks, hosts in ((2, "2"), (4, "1+3")):
                with self.subTest(what=what, hosts=hosts):
                    code, out, errors = jobs.finish(oshrun(ranks, hosts, jobs.VICTIM, what, "7"))
                    self.assertEqual(code, 7, errors)
                    self.assertIn("text that is still in a buffer", out)

    def test_survivors_go_on_over_hosts(self):
        for hosts in ("3", "1+2", "2+1"):
            with self.subTest(hosts=hosts):
                job = oshrun(3, hosts, SURVIVOR, options=["--keep-going"])
                code, out, errors = jobs.finish(job)
                self.assertEqual(sorted(out.split("\n")), ["", "survived 0", "survived 2"], errors)
                self.assertEqual(code, 137, errors)

    def test_teams_shrink_over_hosts_until_one_is_left(self):
        for seed in range(1, 9):
            ranks, hosts = [(3, "3"), (4, "2"), (5, "2+1+2"), (4, "1+3")][seed % 4]
            with self.subTest(seed=seed, hosts=hosts):
                job = oshrun(ranks, hosts, SHRINK, str(seed), options=["--keep-going"])
                _, out, errors = jobs.finish(job)
                self.assertEqual(out, "survived\n", f"seed {seed}: {errors}")


if __name__ == "__main__":
    unittest.main()
