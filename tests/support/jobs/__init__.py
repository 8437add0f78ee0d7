# SPDX-License-Identifier: Apache-2.0
"""The process harness of tests in Python.

commands    jobs of programs, under oshrun or by hand; what they leave; what is marked as theirs
functions   jobs of functions: ``run(function, ranks)``, without the imports' time
launcher    oshrun as a shell would start it, for its own tests
ports       where a store may listen
"""

from jobs.commands import *  # noqa: F403
from jobs.functions import Job, from_first, run  # noqa: F401
from jobs.ports import free_port  # noqa: F401
