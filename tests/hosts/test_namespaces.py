# SPDX-License-Identifier: Apache-2.0
"""A job on two network namespaces with a wire between them: what two machines would see."""

import os
import subprocess
import tempfile
import unittest

from test_two_hosts import ADDRESSES, LIMIT_S, TwoHosts, can_make_hosts

FAR = os.environ["MEMSPAN_FAR"]
UNITTEST = os.environ["MEMSPAN_UNITTEST"]
HAS_UCX = os.environ.get("MEMSPAN_HAS_UCX") == "TRUE"


@unittest.skipUnless(can_make_hosts(), "making network namespaces needs root")
class NamespacesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # mode 0700
        cls.addClassCleanup(folder.cleanup)
        cls.secret = os.path.join(folder.name, "secret")
        with open(os.open(cls.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the secret of two hosts")
        cls.hosts = TwoHosts()
        cls.addClassCleanup(cls.hosts.close)
        cls.hosts.__enter__()

    def start_job(self, places, *command, **more):
        """A process for each place: 0 or 1, the namespace."""
        processes = []
        for rank, place in enumerate(places):
            environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(places)),
                           "MASTER_ADDR": ADDRESSES[places[0]], "MASTER_PORT": "23456",
                           "LOCAL_WORLD_SIZE": str(places.count(place)),
                           "MEMSPAN_JOB_SECRET_FILE": self.secret, "SHMEM_SYMMETRIC_SIZE": "64M", **more}
            processes.append(subprocess.Popen(
                ["ip", "netns", "exec", self.hosts.names[place], *command], text=True, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        try:
            for process in processes:
                out, errors = process.communicate(timeout=LIMIT_S)
                yield process.returncode, out, errors
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def run_job(self, places, *command, **more):
        for rank, (code, out, errors) in enumerate(self.start_job(places, *command, **more)):
            self.assertEqual(code, 0, f"rank {rank}: {out[-2000:]}{errors}")

    def test_processes_meet_and_reach_each_other(self):
        for case in ("compute", "pointers", "statics"):
            with self.subTest(case=case):
                self.run_job([0, 0, 1], FAR, case)

    def test_a_suite(self):
        self.run_job([0, 1, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*")

    def test_ucx_is_refused_on_a_network_that_nobody_trusts(self):
        for code, _, errors in list(self.start_job([0, 1], FAR, "compute", MEMSPAN_CARRIER="ucx")):
            self.assertNotEqual(code, 0)
            self.assertRegex(errors, r"10\.77\.0\.[12], which is neither a loopback address nor on a network")
            self.assertIn("MEMSPAN_TRUSTED_FABRIC", errors)

    if HAS_UCX:
        def test_ucx_on_a_trusted_network(self):
            trusted = {"MEMSPAN_CARRIER": "ucx", "MEMSPAN_TRUSTED_FABRIC": "10.77.0.0/24"}
            for case in ("compute", "pointers", "statics"):
                with self.subTest(case=case):
                    self.run_job([0, 0, 1], FAR, case, **trusted)
            self.run_job([0, 1, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*", **trusted)


if __name__ == "__main__":
    unittest.main()
