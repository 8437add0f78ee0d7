# SPDX-License-Identifier: Apache-2.0
"""A job on two network namespaces with a wire between them: what two machines would see."""

import os
import re
import time
import unittest

import jobs
from jobs.namespaces import LIMIT_S, ip
from namespace_jobs import NamespaceJobs

FAR = os.environ["MEMSPAN_FAR"]
UNITTEST = os.environ["MEMSPAN_UNITTEST"]
HAS_UCX = os.environ.get("MEMSPAN_HAS_UCX") == "TRUE"
HAS_TLS = os.environ.get("MEMSPAN_HAS_TLS") == "ON"


def address_on_the_wire(host):
    """Its link-local address, once the kernel knows that no other host has it."""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        found = re.search(r"inet6 (fe80:[^/]*)/64 scope link *\n", ip("-n", host, "addr", "show", "eth0"))
        if found:
            return found[1]
        time.sleep(0.01)
    raise AssertionError(f"{host} has no link-local address")


class NamespacesTest(NamespaceJobs):
    def test_processes_meet_and_reach_each_other(self):
        for case in ("compute", "pointers", "statics"):
            with self.subTest(case=case):
                self.run_job([0, 0, 1], FAR, case)

    def test_a_suite(self):
        self.run_job([0, 1, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*")

    def test_link_local_addresses(self):
        first, second = (f"{address_on_the_wire(name)}%eth0" for name in self.hosts.names)
        self.run_job([0, 0, 1], FAR, "compute", MASTER_ADDR=first)
        self.run_job([1, 0, 1], UNITTEST, "--gtest_filter=Rma*:Signal*", MASTER_ADDR=second)

    def test_ucx_is_refused_on_a_network_that_nobody_trusts(self):
        with self.job([0, 1], FAR, "compute", MEMSPAN_CARRIER="ucx") as processes:
            for code, _, errors in map(jobs.finish, processes):
                self.assertNotEqual(code, 0)
                self.assertRegex(errors, r"10\.78\.0\.[12], which is neither a loopback address nor on a network")
                self.assertIn("MEMSPAN_TRUSTED_FABRIC", errors)

    if HAS_TLS:
        def test_under_tls(self):
            encrypted = {"MEMSPAN_ENCRYPT_DATA": "1"}
            self.run_job([0, 0, 1], FAR, "compute", **encrypted)
            self.run_job([0, 1, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*", **encrypted)

    if HAS_UCX:
        def test_ucx_on_a_trusted_network(self):
            trusted = {"MEMSPAN_CARRIER": "ucx", "MEMSPAN_TRUSTED_FABRIC": "10.78.0.0/24"}
            for case in ("compute", "pointers", "statics"):
                with self.subTest(case=case):
                    self.run_job([0, 0, 1], FAR, case, **trusted)
            self.run_job([0, 1, 1], UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*", **trusted)


if __name__ == "__main__":
    unittest.main()
