# SPDX-License-Identifier: Apache-2.0
"""Ten hosts with two PEs each under traffic, of which one to eight are killed or cut off at random."""

import os
import random
import signal
import subprocess
import time

import jobs
from jobs.namespaces import ip
from namespace_jobs import NamespaceJobs

STORM = os.environ["MEMSPAN_STORM"]
ROUNDS = 5 * int(os.environ.get("MEMSPAN_TEST_ROUNDS", "1"))
SEED = int(os.environ.get("MEMSPAN_SEED", str(random.SystemRandom().randrange(1 << 30))))
SECONDS = 6  # of traffic: a host that is cut off is lost within 3 s
END_S = 20  # what survivors may take then, on a loaded machine
EACH = 2


class StormTest(NamespaceJobs):
    HOSTS = 10

    def strike(self, processes, host, way):
        if way == "kill":
            for rank in range(EACH * host, EACH * host + EACH):
                os.kill(self.pids[rank], signal.SIGKILL)
        else:
            ip("-n", self.hosts.names[host], "link", "set", "eth0", "down")

    def one_round(self, chance):
        victims = chance.sample(range(self.HOSTS), chance.randint(1, self.HOSTS - 2))
        ways = {host: chance.choice(["kill", "cut"]) for host in victims}
        places = [host for host in range(self.HOSTS) for _ in range(EACH)]
        with self.job(places, STORM, str(SECONDS)) as processes:
            self.pids = {}
            for process in processes:
                _, rank, pid = process.stdout.readline().split()
                self.pids[int(rank)] = int(pid)
            begin = time.monotonic()
            try:
                for host in victims:
                    time.sleep(chance.uniform(0, 2 / len(victims)))
                    self.strike(processes, host, ways[host])
                told = f"seed {SEED}, {ways}"
                gone = {rank for rank, host in enumerate(places) if host in ways}
                for rank, process in enumerate(processes):
                    if rank in gone:
                        continue
                    try:
                        left = begin + SECONDS + END_S - time.monotonic()
                        out, errors = process.communicate(timeout=max(left, 0.1))
                    except subprocess.TimeoutExpired:
                        self.fail(f"PE {rank} has not ended: {told}")
                    self.assertEqual(process.returncode, 0, f"PE {rank}: {told}\n{errors}")
                    words = out.split()
                    self.assertEqual(words[:3], ["survived", str(rank), "lost"], f"{told}\n{errors}")
                    self.assertLessEqual(set(map(int, words[3:])), gone, f"PE {rank} lost living ones: {told}\n{errors}")
            finally:
                for host, way in ways.items():
                    if way == "cut":
                        ip("-n", self.hosts.names[host], "link", "set", "eth0", "up")

    def test_survivors_end_and_name_only_the_dead(self):
        chance = random.Random(SEED)
        for i in range(ROUNDS):
            with self.subTest(round=i, seed=SEED):
                self.one_round(chance)
