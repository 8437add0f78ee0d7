# SPDX-License-Identifier: Apache-2.0
"""Programs and launchers that do not belong together are noticed: never N jobs of one without a word."""
import os
import subprocess
import unittest

from jobs.launcher import OSHRUN, PROBE, PYTHON, SECONDS, environment, run

WARNING = "oshrun: warning: no process of this job uses memspan"


class ProgramTest(unittest.TestCase):
    """A program that was not built with memspan, under our oshrun."""

    def test_a_job_of_strangers_gets_one_line(self):
        code, out, errors = run("-n", "3", "echo", "x")
        self.assertEqual((code, out), (0, "x\nx\nx\n"))
        self.assertTrue(errors.startswith(WARNING), errors)
        self.assertIn("3 ", errors)
        self.assertIn("oshcc", errors)
        self.assertEqual(errors.count("\n"), 1)

    def test_processes_that_lose_the_launch_are_strangers(self):
        code, _, errors = run("-n", "2", "env", "-i", PROBE, "join")
        self.assertEqual(code, 0)
        self.assertIn(WARNING, errors)

    def test_one_process_that_joins_is_enough(self):
        for words in (("-n", "2", PROBE, "join"), ("-n", "2", PROBE, "nothing")):
            code, _, errors = run(*words)
            self.assertEqual((code, errors), (0, ""), words)

    def test_no_line_where_it_explains_nothing(self):
        for words, code in ((("-n", "1", "true"), 0), (("-n", "2", "false"), 1)):
            self.assertEqual(run(*words)[0], code)
            self.assertNotIn("warning", run(*words)[2])
        self.assertEqual(run("-n", "2", "true", env=environment(MEMSPAN_LOG_LEVEL="ERROR")), (0, "", ""))

    def test_a_wrapper_of_our_own_program_is_no_stranger(self):
        code, _, errors = run("-n", "2", "sh", "-c", '"$0" join; exit $?', PROBE)
        self.assertEqual((code, errors), (0, ""))


    def test_a_wrapper_that_closes_our_descriptors_is_named(self):
        calls = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], close_fds={}))"
        code, _, errors = run("-n", "1", PYTHON, "-c", calls.format(True), PROBE, "join")
        self.assertEqual(code, 1)
        self.assertIn("Python's subprocess needs close_fds=False", errors)
        code, _, errors = run("-n", "1", PYTHON, "-c", calls.format(False), PROBE, "join")
        self.assertEqual((code, errors), (0, ""))


class LauncherTest(unittest.TestCase):
    """A program of ours under another vendor's launcher."""

    def start(self, **variables):
        return subprocess.run([PROBE, "join"], env=environment(**variables), stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=SECONDS, check=False, text=True)

    def test_each_is_named_with_how_to_start_instead(self):
        ours = os.path.realpath(OSHRUN)
        for who, variables in (
            ("Open MPI", {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1", "PMIX_RANK": "1"}),
            ("Flux", {"FLUX_TASK_RANK": "1", "FLUX_JOB_SIZE": "2", "PMI_SIZE": "2", "PMI_RANK": "1"}),
            ("PALS", {"PALS_RANKID": "1", "PMI_SIZE": "2"}),
            ("PALS", {"PALS_RANKID": "1"}),
            ("PMI", {"PMI_SIZE": "2", "PMI_RANK": "0"}),
            ("Slurm", {"SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": "0"}),
            ("PMIx", {"PMIX_RANK": "0", "PMIX_NAMESPACE": "job"}),
            ("torchrun", {"WORLD_SIZE": "2", "RANK": "0"}),
        ):
            with self.subTest(who=who, variables=variables):
                ended = self.start(**variables)
                self.assertNotEqual(ended.returncode, 0)
                self.assertIn(who, ended.stderr)
                self.assertIn(ours, ended.stderr)
                for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
                    self.assertIn(name, ended.stderr)
                self.assertEqual(ended.stderr.count("joining the job"), 1, ended.stderr)

    def test_one_process_of_theirs_is_a_job_of_one(self):
        for variables in (
            {"OMPI_COMM_WORLD_SIZE": "1", "PMIX_RANK": "0"},
            {"FLUX_TASK_RANK": "0", "FLUX_JOB_SIZE": "1", "SLURM_STEP_NUM_TASKS": "4"},
            {"PALS_RANKID": "0", "PMI_SIZE": "1"},
            {"SLURM_STEP_NUM_TASKS": "1", "PMIX_RANK": "0"},
            {"SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"},  # a batch script's own shell
            {"WORLD_SIZE": "1"},
        ):
            with self.subTest(variables=variables):
                ended = self.start(**variables)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_a_way_to_meet_makes_it_a_job(self):
        ended = self.start(OMPI_COMM_WORLD_SIZE="2", PMIX_RANK="0", RANK="0", WORLD_SIZE="1",
                           SHMEM_MASTER_ADDR="127.0.0.1", SHMEM_MASTER_PORT="0")
        self.assertIn("SHMEM_MASTER_PORT", ended.stderr)  # it looked there first
