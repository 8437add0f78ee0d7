# SPDX-License-Identifier: Apache-2.0
"""What tests in Python need of the machine, by the names of machine.py.

A test that needs what the machine lacks is skipped with a reason that begins with "needs=NAME"; scripts/test.sh fails
if the probe finds that the machine has it. A test that is not meant for this build or these parameters begins its
reason with "does not apply:".
"""

import functools
import os
import unittest

import machine


@functools.cache
def lacks(name):
    """Whether the machine lacks it: by MEMSPAN_TEST_LACKS, or by trying if that is not set."""
    known = os.environ.get(machine.VARIABLE)
    return name in known.split() if known is not None else machine.why_lacking(name) is not None


def needs(*names):
    """Of a test or a class of tests: skips it if the machine lacks one of the names."""
    lacking = [name for name in names if lacks(name)]
    return unittest.skipIf(lacking, f"needs={lacking[0] if lacking else ''}")


def require(*names):
    """Within a test, or in a module that pytest collects."""
    for name in names:
        if lacks(name):
            raise unittest.SkipTest(f"needs={name}")
