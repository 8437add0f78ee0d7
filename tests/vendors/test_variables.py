# SPDX-License-Identifier: Apache-2.0
"""Launchers that only set variables, with a store that is there already; and oshrun, which asks nobody."""

import os
import subprocess
import unittest

from jobs.commands import finish
from jobs.launcher import OSHRUN, PROBE
from jobs.ports import free_port
from vendors import VICTIM, Session

STORE = os.environ["MEMSPAN_STORE_PROGRAM"]


def slurm(rank, ranks, step):
    return {"SLURM_PROCID": str(rank), "SLURM_STEP_NUM_TASKS": str(ranks), "SLURM_NTASKS": str(ranks),
            "SLURM_JOB_ID": "17", "SLURM_STEP_ID": str(step)}


def flux(rank, ranks, step):
    return {"FLUX_TASK_RANK": str(rank), "FLUX_JOB_SIZE": str(ranks), "FLUX_JOB_ID": f"f{step}"}


class VariablesTest(Session):
    def start_store(self):
        store = subprocess.Popen(
            [STORE, "--listen", "tcp://127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True, env={**os.environ, "XDG_RUNTIME_DIR": self.folder})
        self.addCleanup(store.communicate)
        self.addCleanup(store.terminate)
        line = store.stdout.readline()
        self.assertIn("tcp://", line)
        return line[line.index("tcp://"):].split()[0]

    def test_steps_meet_at_a_store_and_do_not_meet_each_other(self):
        url = self.start_store()
        for variables in (slurm, flux):
            sizes = (2, 3)
            processes = [
                (rank, size, self.start(VICTIM, "hello", MEMSPAN_STORE=url, **variables(rank, size, step)))
                for step, size in enumerate(sizes) for rank in range(size)
            ]
            for rank, size, process in processes:
                self.assertEqual(finish(process)[:2], (0, f"hello {rank} of {size}\n"))

    def test_rank_0_can_host_it_at_an_address(self):
        address = {"SHMEM_MASTER_ADDR": "127.0.0.1", "SHMEM_MASTER_PORT": str(free_port())}
        processes = [self.start(VICTIM, "hello", **address, **slurm(rank, 2, 0)) for rank in range(2)]
        for rank, process in enumerate(processes):
            self.assertEqual(finish(process)[:2], (0, f"hello {rank} of 2\n"))

    def test_without_a_store_the_message_says_what_to_set(self):
        code, _, errors = self.run_job(VICTIM, "hello", **slurm(0, 2, 0))
        self.assertNotEqual(code, 0)
        for part in ("Slurm", "MEMSPAN_STORE", "--mpi=pmix", "--mpi=pmi2"):
            self.assertIn(part, errors)

    def test_a_rank_that_cannot_be_is_named(self):
        code, _, errors = self.run_job(VICTIM, "hello", MEMSPAN_STORE="tcp://127.0.0.1:1", **slurm(2, 2, 0))
        self.assertNotEqual(code, 0)
        self.assertIn("process 2 of 2", errors)

    def test_oshrun_loads_nothing_of_other_launchers(self):
        # Not inside another launcher's job either.
        job = self.start(OSHRUN, "-n", "2", PROBE, "wait", PMIX_RANK="0", PMIX_NAMESPACE="outer",
                         OMPI_COMM_WORLD_SIZE="4", OMPI_COMM_WORLD_RANK="0")
        pids = [int(job.stdout.readline()) for _ in range(2)]
        for pid in pids:
            with open(f"/proc/{pid}/maps") as maps:
                self.assertNotRegex(maps.read(), "libpmix")
        job.terminate()
        finish(job)


if __name__ == "__main__":
    unittest.main()
