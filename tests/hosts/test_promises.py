# SPDX-License-Identifier: Apache-2.0
"""What docs/reliability.md promises between hosts: deaths, silence, cuts that heal, loss. Two network
namespaces, real TCP; times go to the output."""

import contextlib
import os
import re
import signal
import socket
import threading
import unittest

import jobs
from needs import needs
from namespace_jobs import NamespaceJobs

UNITTEST = os.environ["MEMSPAN_UNITTEST"]
BLOCKED = os.environ["MEMSPAN_BLOCKED"]
NAME = re.escape(socket.gethostname())
DEATH_BOUND_S = 1.0
# Silence is borne for 2 s, looked for in fifths of that, and a launcher may know more for half a second.
SILENCE_BOUND_S = 4.0
SILENCE_BORNE_S = 12
ROUNDS = int(os.environ.get("MEMSPAN_TEST_ROUNDS", "2"))


@needs("nft")
class PromisesTest(NamespaceJobs):
    def ready(self, processes):
        pids = {}
        for process in processes:
            pids.update(jobs.read_ready(process.stdout, 1))
        return pids

    def expect_end(self, processes, ranks, bound_s, since, said):
        """Those ranks end with 1 within the bound, and say that."""
        with jobs.Ends(processes[rank].pid for rank in ranks) as ends:
            left = ends.wait(bound_s)
        took = since.seconds()
        stuck = [rank for rank in ranks if processes[rank].pid in left]
        self.assertEqual(stuck, [], f"not ended after {took:.1f} s")
        for rank in ranks:
            code, _, errors = jobs.finish(processes[rank])
            self.assertEqual(code, 1, f"rank {rank}: {errors}")
            self.assertRegex(errors, said, f"rank {rank}")
        return took

    def rounds(self, what, trial):
        times = [trial() for _ in range(ROUNDS)]
        print(f"{what}: {', '.join(f'{took:.2f}' for took in times)} s", flush=True)

    def test_a_death_on_another_host(self):  # rows 2 and 6
        def trial():
            with self.job([0, 0, 1], jobs.VICTIM, "busy") as processes:
                pids = self.ready(processes)
                since = jobs.Stopwatch()
                os.kill(pids[2], signal.SIGKILL)
                return self.expect_end(processes, [0, 1], DEATH_BOUND_S, since, "PE 2")

        self.rounds("death", trial)

    def trial_of_silence(self, command, befalls, places=(0, 0, 1)):
        """Every process of both hosts ends, since neither hears of the other."""
        with self.job(list(places), *command) as processes:
            self.ready(processes)
            since = jobs.Stopwatch()
            with befalls():
                return self.expect_end(processes, range(len(places)), SILENCE_BOUND_S, since, r"PE \d")

    def test_a_partition_with_data_in_flight(self):  # row 3
        self.rounds("partition, busy",
                    lambda: self.trial_of_silence([jobs.VICTIM, "busy"], lambda: self.silence(0, 1)))

    def test_a_cut_in_one_direction(self):  # row 3
        for deaf in (0, 1):
            self.rounds(f"host {deaf} is deaf, busy",
                        lambda d=deaf: self.trial_of_silence([jobs.VICTIM, "busy"], lambda: self.silence(d)))

    def test_a_wire_that_is_down(self):  # row 3
        self.rounds("wire down, busy", lambda: self.trial_of_silence([jobs.VICTIM, "busy"], self.wire_down))

    def test_a_partition_while_all_wait(self):  # row 3
        # Nobody sends anything: rank 2, on the other host, never makes the call.
        for call in ("wait_until", "barrier_all"):
            def trial(call=call):
                with self.job([0, 0, 1], BLOCKED, call, "2") as processes:
                    self.ready(processes)
                    since = jobs.Stopwatch()
                    with self.silence(0, 1):
                        return self.expect_end(processes, [0, 1], SILENCE_BOUND_S, since, rf"PE 2 on host {NAME}( at [\d.]+)? \(process")

            self.rounds(f"partition, idle in {call}", trial)

    def test_a_host_that_stands_still(self):  # row 3
        def trial():
            with self.job([0, 1, 1], jobs.VICTIM, "busy") as processes:
                pids = self.ready(processes)
                since = jobs.Stopwatch()
                for rank in (1, 2):
                    os.kill(pids[rank], signal.SIGSTOP)
                took = self.expect_end(processes, [0], SILENCE_BOUND_S, since, r"PE [12] on host")
                for rank in (1, 2):
                    os.kill(pids[rank], signal.SIGCONT)
                self.expect_end(processes, [1, 2], SILENCE_BOUND_S, jobs.Stopwatch(), r"PE \d")
                return took

        self.rounds("stopped host", trial)

    @contextlib.contextmanager
    def again_and_again(self, befalls, seconds, pause_s):
        """`befalls` for so long, with pauses, until the block ends."""
        ended = threading.Event()

        def run():
            while not ended.is_set():
                with befalls():
                    ended.wait(seconds)
                ended.wait(pause_s)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def test_short_cuts_lose_and_double_nothing(self):  # row 4
        with self.again_and_again(lambda: self.silence(0, 1), 0.6, 1.5):
            self.run_job([0, 0, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*")
            self.run_job([0, 1, 1], BLOCKED, "mixed", "all", "20")

    def test_a_process_that_is_stopped_for_a_moment(self):  # row 4
        with self.job([0, 0, 1], BLOCKED, "mixed", "all", "200") as processes:
            pids = self.ready(processes)
            for rank in (2, 0):
                os.kill(pids[rank], signal.SIGSTOP)
                threading.Event().wait(0.7)
                os.kill(pids[rank], signal.SIGCONT)
            for rank, process in enumerate(processes):
                code, _, errors = jobs.finish(process)
                self.assertEqual(code, 0, f"rank {rank}: {errors}")

    if ROUNDS > 2:  # it takes most of a minute
        def test_a_raised_limit_bears_longer_silence(self):  # row 4
            # Longer than the limit of 10 s that the sockets once had.
            with self.job([0, 1], BLOCKED, "mixed", "all", "20000", MEMSPAN_SILENCE_LIMIT="90s") as processes:
                pids = self.ready(processes)
                with self.silence(0, 1):
                    threading.Event().wait(SILENCE_BORNE_S)
                os.kill(pids[1], signal.SIGSTOP)
                threading.Event().wait(SILENCE_BORNE_S)
                self.assertEqual([process.poll() for process in processes], [None, None])
                os.kill(pids[1], signal.SIGCONT)
                for rank, process in enumerate(processes):
                    code, _, errors = jobs.finish(process)
                    self.assertEqual(code, 0, f"rank {rank}: {errors}")

    def test_a_network_that_loses_packets(self):  # row 5
        for host in (0, 1):
            self.filter(host, "numgen random mod 100 < 5")
            self.addCleanup(self.filter, host)
        self.run_job([0, 0, 1], UNITTEST, "--gtest_filter=Rma*")
        self.run_job([0, 1, 1], BLOCKED, "mixed", "all", str(ROUNDS))


if __name__ == "__main__":
    unittest.main()
