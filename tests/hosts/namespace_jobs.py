# SPDX-License-Identifier: Apache-2.0
"""Jobs whose processes are in two network namespaces with a wire between them, and what befalls the
wire."""

import contextlib
import os
import subprocess
import tempfile
import unittest

import jobs
from jobs.namespaces import Namespaces, await_running, ip
from needs import needs

TABLE = "memspan_test"


@needs("hosts")
class NamespaceJobs(unittest.TestCase):
    HOSTS = 2

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # mode 0700
        cls.addClassCleanup(folder.cleanup)
        cls.secret = os.path.join(folder.name, "secret")
        with open(os.open(cls.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("the secret of two hosts")
        cls.hosts = Namespaces(cls.HOSTS)
        cls.addClassCleanup(cls.hosts.close)
        cls.hosts.__enter__()

    @contextlib.contextmanager
    def job(self, places, *command, **more):
        """A process for each place: 0 or 1, the namespace. None outlives the block."""
        processes = []
        try:
            for rank, place in enumerate(places):
                environment = {"RANK": str(rank), "WORLD_SIZE": str(len(places)),
                               "MASTER_ADDR": self.hosts.addresses[places[0]], "MASTER_PORT": "23456",
                               "LOCAL_WORLD_SIZE": str(places.count(place)),
                               "MEMSPAN_JOB_SECRET_FILE": self.secret, "SHMEM_SYMMETRIC_SIZE": "64M", **more}
                processes.append(jobs.start([*self.hosts.inside(place), *command],
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
            ends = [jobs.finish(process) for process in processes]
        told = "".join(f"rank {rank}: {code}, {out[-2000:]}{errors}" for rank, (code, out, errors) in enumerate(ends))
        self.assertEqual([code for code, _, _ in ends], [0] * len(places), told)

    # What befalls the wire, seen from the host of that number.

    def filter(self, host, *rules):
        """Drops what the rules name, of what comes in; nothing without rules."""
        script = f"add table inet {TABLE}\ndelete table inet {TABLE}\n"
        if rules:
            script += f"table inet {TABLE} {{ chain input {{ type filter hook input priority 0;\n"
            script += "".join(f"iif != lo {rule} drop\n" for rule in rules) + "}\n}\n"
        subprocess.run([*self.hosts.inside(host), "nft", "-f", "-"], input=script,
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
        ip("-n", name, "link", "set", "eth0", "down")
        try:
            yield
        finally:
            ip("-n", name, "link", "set", "eth0", "up")
            await_running(name)
