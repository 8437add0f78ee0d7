# SPDX-License-Identifier: Apache-2.0
"""Under Open MPI's mpirun, by PMIx."""

import unittest

from needs import needs
from vendors import LauncherPromises, Session, open_mpi


@needs("openmpi")
class OpenMpiTest(LauncherPromises, Session):
    launch = staticmethod(open_mpi)
    rank_variable = "OMPI_COMM_WORLD_RANK"
    who = "Open MPI"


if __name__ == "__main__":
    unittest.main()
