# SPDX-License-Identifier: Apache-2.0
"""Under MPICH's mpiexec (Hydra, as Intel MPI's), by PMI-1."""

import sys
import unittest

from needs import needs
from vendors import VICTIM, LauncherPromises, Session, hydra


@needs("mpich")
class HydraTest(LauncherPromises, Session):
    launch = staticmethod(hydra)
    rank_variable = "PMI_RANK"
    who = "PMI"

    def test_a_wrapper_that_closes_the_connection_is_named(self):
        calls = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:], close_fds=True))"
        code, _, errors = self.run_job(*hydra(2), sys.executable, "-c", calls, VICTIM, "hello")
        self.assertNotEqual(code, 0)
        self.assertIn("of PMI_FD is not the launcher's socket", errors)


if __name__ == "__main__":
    unittest.main()
