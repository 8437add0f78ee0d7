# SPDX-License-Identifier: Apache-2.0
"""A process of a job is killed at a random moment, many times: the others end within a second with
a line that names it, and nothing is left."""

import os
import random
import re
import signal
import time
import unittest

import jobs

ROUNDS = int(os.environ.get("MEMSPAN_KILL_ROUNDS", "50"))
SEED = int(os.environ.get("MEMSPAN_SEED", "20240817"))
MOST_DELAY_S = 0.02
BOUND_S = 1.0


class KillTest(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(SEED)
        self.before = jobs.traces()
        print(f"seed {SEED}, {ROUNDS} rounds", flush=True)

    def tearDown(self):
        self.assertEqual(jobs.traces(), self.before)

    def kill_one(self, pids):
        rank = self.random.choice(sorted(pids))
        time.sleep(self.random.random() * MOST_DELAY_S)  # the random moment itself
        os.kill(pids[rank], signal.SIGKILL)
        return rank, jobs.Stopwatch()

    def check_gone(self, pids, watch):
        while any(jobs.is_alive(pid) for pid in pids.values()):
            self.assertLess(watch.seconds(), BOUND_S, "survivors are still there")
            os.sched_yield()

    def test_under_oshrun(self):
        slowest = 0.0
        for _ in range(ROUNDS):
            ranks = self.random.choice([2, 3, 4, 8])
            job = jobs.oshrun(ranks, "busy")
            pids = jobs.read_ready(job.stdout, ranks)
            rank, watch = self.kill_one(pids)
            self.check_gone(pids, watch)
            code, _, errors = jobs.finish(job)
            slowest = max(slowest, watch.seconds())
            self.assertLess(watch.seconds(), BOUND_S)
            self.assertEqual(code, 128 + signal.SIGKILL, errors)
            self.assertIn(f"PE {rank} (process {pids[rank]}) was killed by signal 9", errors)
            self.assertRegex(errors, rf"PE \d+: shmem_\w+: PE {rank} \(process {pids[rank]}\) died")
        print(f"slowest end {slowest:.3f} s")

    def test_by_hand(self):
        slowest = 0.0
        for _ in range(max(1, ROUNDS // 2)):
            ranks = self.random.choice([2, 3])
            processes = jobs.by_hand(ranks, "busy")
            pids = {}
            for process in processes:
                pids.update(jobs.read_ready(process.stdout, 1))
            rank, watch = self.kill_one(pids)
            for number, process in enumerate(processes):
                code, _, errors = jobs.finish(process)
                if number == rank:
                    continue
                self.assertEqual(code, 1, errors)
                self.assertTrue(re.search(rf"PE {rank} \(process {pids[rank]}\) died", errors), errors)
            slowest = max(slowest, watch.seconds())
            self.assertLess(watch.seconds(), BOUND_S)
        print(f"slowest end {slowest:.3f} s")

    def test_a_stopped_process_is_not_dead(self):
        job = jobs.oshrun(2, "busy")
        pids = jobs.read_ready(job.stdout, 2)
        os.kill(pids[1], signal.SIGSTOP)
        time.sleep(0.5)  # long enough for any detector to be wrong
        self.assertIsNone(job.poll())
        os.kill(pids[1], signal.SIGCONT)
        os.kill(pids[0], signal.SIGKILL)
        self.assertEqual(jobs.finish(job)[0], 128 + signal.SIGKILL)


if __name__ == "__main__":
    unittest.main()
