# SPDX-License-Identifier: Apache-2.0
"""Jobs whose processes are in two network namespaces with a wire between them, and what befalls the
wire."""

import contextlib
import os
import re
import subprocess
import tempfile
import unittest

import jobs
from test_two_hosts import ADDRESSES, TwoHosts, can_make_hosts, ip

TABLE = "memspan_test"


@unittest.skipUnless(can_make_hosts(), "making network namespaces needs root")
class NamespaceJobs(unittest.TestCase):
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

    @contextlib.contextmanager
    def job(self, places, *command, **more):
        """A process for each place: 0 or 1, the namespace. None outlives the block."""
        processes = []
        try:
            for rank, place in enumerate(places):
                environment = {"RANK": str(rank), "WORLD_SIZE": str(len(places)),
                               "MASTER_ADDR": ADDRESSES[places[0]], "MASTER_PORT": "23456",
                               "LOCAL_WORLD_SIZE": str(places.count(place)),
                               "MEMSPAN_JOB_SECRET_FILE": self.secret, "SHMEM_SYMMETRIC_SIZE": "64M", **more}
                processes.append(jobs.start(["ip", "netns", "exec", self.hosts.names[place], *command],
                                            **environment))
            yield processes
        finally:
            for process in processes:
                process.kill()
                process.wait()
                process.stdout.close()
                process.stderr.close()

    def run_job(self, places, *command, **more):
        with self.job(places, *command, **more) as processes:
            for rank, process in enumerate(processes):
                code, out, errors = jobs.finish(process)
                self.assertEqual(code, 0, f"rank {rank}: {out[-2000:]}{errors}")

    # What befalls the wire, seen from the host of that number.

    def filter(self, host, *rules):
        """Drops what the rules name, of what comes in; nothing without rules."""
        script = f"add table inet {TABLE}\ndelete table inet {TABLE}\n"
        if rules:
            script += f"table inet {TABLE} {{ chain input {{ type filter hook input priority 0;\n"
            script += "".join(f"iif != lo {rule} drop\n" for rule in rules) + "}\n}\n"
        subprocess.run(["ip", "netns", "exec", self.hosts.names[host], "nft", "-f", "-"], input=script,
                       text=True, check=True, capture_output=True)

    @contextlib.contextmanager
    def silence(self, *deaf):
        """What is sent to those hosts does not come in."""
        try:
            for host in deaf:
                self.filter(host, "")
            yield
        finally:
            for host in deaf:
                self.filter(host)

    @contextlib.contextmanager
    def wire_down(self):
        name = self.hosts.names[0]
        links = subprocess.run(["ip", "-n", name, "-o", "link"], text=True, check=True, capture_output=True)
        wire = re.search(r"(ms\w+)@", links.stdout)[1]
        ip("-n", name, "link", "set", wire, "down")
        try:
            yield
        finally:
            ip("-n", name, "link", "set", wire, "up")
