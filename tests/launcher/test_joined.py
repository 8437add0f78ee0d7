# SPDX-License-Identifier: Apache-2.0
"""Ends of processes that joined the job."""

import os
import signal
import socket
import subprocess
import time
import unittest

from jobs.launcher import PROBE, all_end, environment, read_lines, run, start, strangers
from needs import needs

LONGEST_END_S = 3
LIMIT_S = 30


class JoinedTest(unittest.TestCase):
    def ends(self, code, mode, line=None):
        """oshrun's code and one line of it; what else was said on stderr."""
        got, _, errors = run("-n", "3", PROBE, mode, env=strangers())
        self.assertEqual(got, code, errors)
        ours = [it for it in errors.splitlines() if it.startswith("oshrun:")]
        self.assertEqual(len(ours), 0 if line is None else 1, errors)
        if line is not None:
            self.assertRegex(ours[0], rf"^oshrun: PE 1 \(process \d+\) {line}( \[memspan-explain [a-z-]+\])?$")
        return [it for it in errors.splitlines() if it not in ours]

    def test_one_that_is_killed_ends_the_others(self):
        began = time.monotonic()
        said = self.ends(137, "kill", r"was killed by signal 9 \(Killed\)")
        self.assertLess(time.monotonic() - began, LONGEST_END_S)
        # Each survivor names it.
        self.assertEqual(sum("PE 1" in line for line in said), 2, said)

    def test_one_that_forgets_to_finalize(self):
        self.ends(1, "no_finalize", "exited with code 0 without shmem_finalize")

    def test_a_global_exit_is_no_error_of_the_launchers(self):
        self.ends(7, "global_exit")

    def test_an_exit_code(self):
        self.ends(9, "exit_code", "exited with code 9")

    def test_one_that_left_before_the_others_joined(self):
        self.ends(1, "leave_before_init", "exited with code 0 without shmem_init")

    def test_the_port_after_the_masters_is_explained(self):
        """MASTER_PORT + 11: by the process that finds no store there, and by the one that cannot host it."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            store = taken.getsockname()[1]
            variables = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store - 11)}
            explained = rf"Port {store} is MASTER_PORT \+ 11: torchrun's own store has MASTER_PORT"
            hosts = environment(RANK="0", **variables)
            ended = subprocess.run([PROBE], env=hosts, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
            self.assertRegex(ended.stderr, "hosting the job's store.*" + explained)
        comes = environment(RANK="1", MEMSPAN_INIT_TIMEOUT="1", **variables)
        ended = subprocess.run([PROBE], env=comes, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False)
        self.assertRegex(ended.stderr, rf"no store at tcp://127.0.0.1:{store} .*" + explained)

    @needs("seccomp")
    def test_a_death_is_noticed_without_a_launcher_and_pidfds(self):
        def join(rank, error):
            variables = environment(RANK=str(rank), WORLD_SIZE="3", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
            command = [os.environ["MEMSPAN_WITHOUT_SYSCALLS"], "--errno", error, "modern", PROBE, "kill"]
            return subprocess.Popen(command, env=variables, stderr=subprocess.PIPE, text=True)

        for error in ("EPERM", "ENOSYS"):
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1] - 11  # the store's is 11 more
            processes = [join(rank, error) for rank in range(3)]
            for rank, process in enumerate(processes):
                _, errors = process.communicate(timeout=LIMIT_S)
                with self.subTest(error=error, rank=rank):
                    self.assertEqual(process.returncode, -signal.SIGKILL if rank == 1 else 1, errors)
                    self.assertRegex(errors, "^$" if rank == 1 else "PE 1")

    def test_a_killed_launcher_takes_them_along(self):
        job = start("-n", "3", PROBE, "wait", env=strangers())
        pids = read_lines(job.stdout, 3)
        job.kill()
        all_end(2, pids)
        job.communicate()
