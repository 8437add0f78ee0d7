# SPDX-License-Identifier: Apache-2.0
"""Jobs of shells on one host and on several, none of whose processes may be left."""

import contextlib
import os
import tempfile
import unittest

import jobs
from jobs.launcher import OSHRUN, SECONDS, environment, start, until
from jobs.terminal import Terminal, state_of

BOUND_S = 5.0  # from the signal to the end of the job, on a busy machine
FOR_EVER = "while :; do sleep 0.02; done"
HOSTS = "one:1,other:2" if os.environ.get("MEMSPAN_HAS_TLS", "ON") == "ON" else "one:3"  # several need a store
LAYOUTS = {
    "1 PE": (1, []),
    "3 PEs": (3, []),
    "simulated hosts": (3, ["--simulate-hosts", "2+1"]),
    "agents": (3, ["--hosts", HOSTS, "--remote-shell", "env HOST={}"]),
}


class OfShells(unittest.TestCase):
    """Every process of a test's jobs is marked, and none may be left."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.mark = f"MEMSPAN_TEST_MARK={os.path.basename(self.folder)}"
        self.variables = dict([self.mark.split("=")], FOLDER=self.folder, MEMSPAN_LOG_LEVEL="ERROR")
        self.addCleanup(jobs.end_all, self.mark)

    def script(self, text):
        for file in os.listdir(self.folder):
            os.unlink(f"{self.folder}/{file}")
        return f"echo $$ >$FOLDER/$RANK; {text}"

    def pids(self, ranks):
        """Of all PEs, once each has written its own."""
        found = {}

        def has_all():
            for rank in range(ranks):
                with contextlib.suppress(OSError, ValueError), open(f"{self.folder}/{rank}", encoding="ascii") as file:
                    found[rank] = int(file.read())
            return len(found) == ranks

        until(SECONDS, f"{ranks} PEs", has_all)
        return found.values()

    def wait_until_stopped(self, ranks):
        pids = self.pids(ranks)
        until(SECONDS, "all PEs are stopped", lambda: all(state_of(pid) == "T" for pid in pids))

    def start_program(self, layout, *words, **more):
        ranks, options = LAYOUTS[layout]
        return start("-n", ranks, *options, *words, env=environment(**self.variables), **more)

    def start(self, layout, script, *options, **more):
        return self.start_program(layout, *options, "sh", "-c", self.script(script), **more)

    def in_terminal(self, layout, script, shell='exec "$@"', **more):
        """oshrun as the shell's script starts it."""
        ranks, options = LAYOUTS[layout]
        return Terminal("-c", shell, "bash", OSHRUN, "-n", str(ranks), *options, "sh", "-c", self.script(script),
                        program="bash", **self.variables, **more)

    def expect_nothing_left(self):
        until(BOUND_S, "the end of all processes", lambda: not jobs.marked(self.mark))

    def finish(self, job, code):
        """What it still wrote."""
        out, errors = job.communicate(timeout=BOUND_S)
        self.assertEqual(job.returncode, code, errors)
        self.expect_nothing_left()
        return out.decode(), errors.decode()
