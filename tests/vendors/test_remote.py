# SPDX-License-Identifier: Apache-2.0
"""Launchers that start processes on another host, too: a network namespace, entered instead of by ssh."""

import os
import shlex
import unittest

from jobs.namespaces import Namespaces
from needs import needs
from vendors import FAR, HYDRA, OPEN_MPI, VICTIM, Session, hydra, open_mpi


@needs("hosts")
class RemoteTest(Session):
    def setUp(self):
        super().setUp()
        self.hosts = self.enterContext(Namespaces(2))
        self.addresses = self.hosts.addresses
        self.agent = os.path.join(self.folder, "memspan-agent")
        names = "".join(f"  {address}) name={name} ;;\n"
                        for address, name in zip(self.addresses, self.hosts.names))
        with open(self.agent, "w") as script:
            script.write("#!/bin/sh\n# As ssh: [options] HOST COMMAND...\n"
                         'while [ "${1#-}" != "$1" ]; do shift; done\n'
                         f'case $1 in\n{names}esac\nshift\nexec ip netns exec "$name" sh -c "$*"\n')
        os.chmod(self.agent, 0o700)
        self.places = f"{self.addresses[0]}:2,{self.addresses[1]}:1"

    def launchers(self):
        """The words before a program of three processes: two on the first host, one on the other."""
        inside = ["ip", "netns", "exec", self.hosts.names[0]]
        return {
            OPEN_MPI: inside + open_mpi(3, "--host", self.places, "--mca", "plm", "rsh", "--mca",
                                        "plm_rsh_agent", shlex.quote(self.agent), "--mca",
                                        "oob_tcp_if_include", f"{self.addresses[0]}/24"),
            HYDRA: inside + hydra(3, "-launcher", "ssh", "-launcher-exec", self.agent, "-hosts", self.places),
        }

    def test_two_hosts_need_no_variable(self):
        for name, launch in self.launchers().items():
            for case in ("compute", "statics"):
                with self.subTest(launcher=name, case=case):
                    self.expect_well(*launch, FAR, case)

    def test_the_code_of_global_exit_is_the_jobs(self):
        for name, launch in self.launchers().items():
            with self.subTest(launcher=name):
                self.assertEqual(self.run_job(*launch, VICTIM, "global-exit", "7")[0], 7)

    def test_the_stores_address_can_be_given(self):
        for name, launch in self.launchers().items():
            with self.subTest(launcher=name):
                self.expect_well(*launch, VICTIM, "hello", SHMEM_MASTER_ADDR=self.addresses[0])


RemoteTest = needs("openmpi")(needs("mpich")(RemoteTest))

if __name__ == "__main__":
    unittest.main()
