# SPDX-License-Identifier: Apache-2.0
"""Programs of ours under the launchers of others: what every one of them promises, and theirs."""

import os
import signal
import subprocess
import tempfile
import unittest

from jobs.commands import Ends, end_all, finish, read_ready
from jobs.launcher import environment
from needs import needs

VICTIM = os.environ["MEMSPAN_VICTIM"]
UNITTEST = os.environ["MEMSPAN_UNITTEST"]
FAR = os.environ["MEMSPAN_FAR"]
WITHOUT_SYSCALLS = os.environ["MEMSPAN_WITHOUT_SYSCALLS"]
ENDS_WITHIN_S = 10  # after a death; theirs takes a second on an idle machine

OPEN_MPI = "mpirun.openmpi"
HYDRA = "mpiexec.hydra"


def open_mpi(ranks, *options):
    return [OPEN_MPI, "--allow-run-as-root", "--oversubscribe", *options, "-np", str(ranks)]


def hydra(ranks, *options):
    return [HYDRA, *options, "-n", str(ranks)]


def ours_in_shared_memory():
    return {name for name in os.listdir("/dev/shm") if "memspan" in name}


class Session(unittest.TestCase):
    """Starts jobs with a mark, in a runtime folder of their own, and leaves no process behind."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())  # mode 0700
        self.before = ours_in_shared_memory()
        self.mark = f"MEMSPAN_TEST_MARK={os.path.basename(self.folder)}"
        self.addCleanup(end_all, self.mark)

    def start(self, *command, **variables):
        mark, value = self.mark.split("=")
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=environment(XDG_RUNTIME_DIR=self.folder, **{mark: value}, **variables),
        )

    def run_job(self, *command, **variables):
        """(code, stdout, stderr)"""
        return finish(self.start(*command, **variables))

    def expect_well(self, *command, **variables):
        code, out, errors = self.run_job(*command, **variables)
        self.assertEqual(code, 0, f"{out[-2000:]}{errors[-2000:]}")
        return out

    def expect_nothing_left(self, jobs_processes):
        with Ends(jobs_processes) as ends:
            self.assertEqual(ends.wait(ENDS_WITHIN_S), [])
        self.assertEqual(os.listdir(self.folder), [])
        self.assertEqual(ours_in_shared_memory() - self.before, set())


class LauncherPromises:
    """For a Session with `launch(ranks)`, the words before the program, `rank_variable` and `who`."""

    def test_each_process_is_a_pe(self):
        out = self.expect_well(*self.launch(4), VICTIM, "hello")
        self.assertEqual(sorted(out.splitlines()), [f"hello {rank} of 4" for rank in range(4)])

    def test_two_programs_are_one_job(self):
        out = self.expect_well(*self.launch(1), VICTIM, "hello", ":", "-n", "2", VICTIM, "hello")
        self.assertEqual(sorted(out.splitlines()), [f"hello {rank} of 3" for rank in range(3)])

    def test_one_process_is_a_job_of_one(self):
        self.assertEqual(self.expect_well(*self.launch(1), VICTIM, "hello"), "hello 0 of 1\n")

    def test_a_suite(self):
        self.expect_well(*self.launch(3), UNITTEST, "--gtest_filter=Init*:Rma*:Signal*:Collective*:Static*")

    def test_hosts_that_are_parted_by_hand(self):
        script = f'MEMSPAN_HOST_ID=host-$(({self.rank_variable} / 2)) exec "$0" "$@"'
        for case in ("pointers", "statics"):
            self.expect_well(*self.launch(4), "sh", "-c", script, FAR, case, LOCAL_WORLD_SIZE="2")

    def test_a_process_joins_again_after_the_end(self):
        self.expect_well(*self.launch(3), FAR, "rejoin")

    def test_the_code_of_global_exit_is_the_jobs(self):
        for call, code in (("global-exit", 7), ("global-exit", 0), ("compute-exit", 5)):
            with self.subTest(call=call, code=code):
                self.assertEqual(self.run_job(*self.launch(3), VICTIM, call, str(code))[0], code)

    def test_a_process_that_fails_fails_the_job(self):
        code, _, errors = self.run_job(*self.launch(3), VICTIM, "exit-early")
        # Its code, or that of one that noticed it and ended first.
        self.assertIn(code, (5, 1), errors)

    def test_a_death_ends_the_job_and_leaves_nothing(self):
        for victim in (0, 2):  # the one with the store, another one
            with self.subTest(victim=victim):
                job = self.start(*self.launch(3), VICTIM, "busy")
                pids = read_ready(job.stdout, 3)
                os.kill(pids[victim], signal.SIGKILL)
                code, _, errors = finish(job)
                self.assertNotEqual(code, 0, errors)
                self.expect_nothing_left(pids.values())

    @needs("seccomp")
    def test_a_job_needs_no_pidfds(self):
        self.expect_well(WITHOUT_SYSCALLS, "modern", *self.launch(3), VICTIM, "hello")

    def test_a_store_that_cannot_be_is_everybodys_failure(self):
        code, _, errors = self.run_job(*self.launch(2), VICTIM, "hello", SHMEM_MASTER_ADDR="192.0.2.1")
        self.assertNotEqual(code, 0)
        self.assertIn("hosting the store", errors)
        self.assertIn("192.0.2.1", errors)

    def test_a_start_says_who_told_it(self):
        _, _, errors = self.run_job(*self.launch(2), VICTIM, "hello", MEMSPAN_LOG_LEVEL="DEBUG")
        self.assertRegex(errors, rf"met the others at tcp://127\.0\.0\.1:\d+ \(a store of PE 0\), with the place from .*{self.who}")
