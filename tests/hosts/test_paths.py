# SPDX-License-Identifier: Apache-2.0
"""What docs/reliability.md promises when a path between two hosts fails and another one works (row 10). memspan
uses one address of a peer; so the second path is the network's: each host's address is on its loopback
interface, two wires lead there, and who routes takes the other one."""

import contextlib
import os
import threading
import unittest

import jobs
from jobs.namespaces import await_running, ip
from needs import needs
from namespace_jobs import NamespaceJobs

UNITTEST = os.environ["MEMSPAN_UNITTEST"]
BLOCKED = os.environ["MEMSPAN_BLOCKED"]
VICTIM = os.environ["MEMSPAN_VICTIM"]
ROUNDS = int(os.environ.get("MEMSPAN_TEST_ROUNDS", "2"))
SWITCH_S = 0.5  # from the cut to the other route, as a routing daemon with BFD has it
DEAD_S = 3  # the wire stays so for longer than silence is borne
SILENCE_BOUND_S = 4.0  # as in test_promises.py


@needs("hosts")
@needs("nft")
class PathsTest(NamespaceJobs):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # The addresses of jobs, which are on no wire.
        cls.hosts.addresses = [f"10.79.0.{host + 1}" for host in range(2)]
        first, second = cls.hosts.names
        ip("link", "add", "eth1", "netns", first, "type", "veth", "peer", "name", "eth1", "netns", second)
        for host, name in enumerate(cls.hosts.names):
            ip("-n", name, "addr", "add", f"10.78.1.{host + 1}/24", "dev", "eth1")
            ip("-n", name, "link", "set", "eth1", "up")
            ip("-n", name, "addr", "add", f"{cls.hosts.addresses[host]}/32", "dev", "lo")
        for name in cls.hosts.names:
            await_running(name, "eth1")
        cls.route(0)

    @classmethod
    def route(cls, wire):
        """Both hosts' packets go over that wire from now on."""
        for host, name in enumerate(cls.hosts.names):
            other = 1 - host
            ip("-n", name, "route", "replace", f"{cls.hosts.addresses[other]}/32", "via", f"10.78.{wire}.{other + 1}",
               "dev", f"eth{wire}", "src", cls.hosts.addresses[host])

    @contextlib.contextmanager
    def dead(self, wire):
        """What comes over that wire is lost."""
        for host in (0, 1):
            self.filter(host, f"iifname eth{wire}")
        try:
            yield
        finally:
            for host in (0, 1):
                self.filter(host)

    @contextlib.contextmanager
    def failing_paths(self):
        """One wire after the other fails and the routes change, until the block ends. How often that was borne."""
        ended, switches = threading.Event(), []

        def run():
            wire = 0
            while not ended.is_set():
                with self.dead(wire):
                    ended.wait(SWITCH_S)
                    wire = 1 - wire
                    self.route(wire)
                    if not ended.wait(DEAD_S):
                        switches.append(wire)
            self.route(0)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield switches
        finally:
            ended.set()
            thread.join()

    def test_a_job_goes_on_when_the_route_changes(self):
        with self.failing_paths() as switches:
            self.run_job([0, 0, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*")
            while len(switches) < ROUNDS:
                self.run_job([0, 1, 1], BLOCKED, "mixed", "all", "20")
        print(f"{len(switches)} dead wires and changes of the route", flush=True)
        self.assertGreaterEqual(len(switches), ROUNDS)

    def test_without_another_route_the_loss_is_told(self):
        """The second wire works all the time, and nobody routes to it."""
        with self.job([0, 1], VICTIM, "busy") as processes:
            pids = {}
            for process in processes:
                pids.update(jobs.read_ready(process.stdout, 1))
            since = jobs.Stopwatch()
            with self.dead(0):
                with jobs.Ends(pids.values()) as ends:
                    self.assertEqual(ends.wait(SILENCE_BOUND_S), [])
                print(f"without another route: {since.seconds():.2f} s", flush=True)
                for rank, process in enumerate(processes):
                    code, _, errors = jobs.finish(process)
                    self.assertEqual(code, 1, errors)
                    self.assertRegex(errors, rf"PE {1 - rank} on host .*")


if __name__ == "__main__":
    unittest.main()
