# SPDX-License-Identifier: Apache-2.0
"""memspan: one span of memory across processes, hosts and devices.

The packages that programs use:

- ``shmem``: SHMEM, a symmetric heap with put, get, signals, atomics and collectives;
- ``mf_smem``, ``memfabric_hybrid`` and ``mf_adapter``: MemFabric, pools of memory that processes
  join and leave, and transfers between named endpoints;
- ``memspan.mooncake``: MemFabric's transfers with the methods of Mooncake's engine.

Here: the exceptions of all of them, and where headers and libraries lie.
"""

import atexit
import os

from memspan import _core
from memspan._core import __version__
from memspan.errors import Error, InvalidArgument, OutOfMemory, PeerFailed, Timeout

__all__ = [
    "Error",
    "InvalidArgument",
    "OutOfMemory",
    "PeerFailed",
    "Timeout",
    "__version__",
    "get_include_path",
    "get_lib_path",
]

# Threads of the library may outlive the interpreter.
atexit.register(_core.end_interpreter)

# Where the extension is: after `pip install -e` these files are elsewhere.
_HERE = os.path.dirname(os.path.abspath(_core.__file__))


def get_include_path() -> str:
    """The folder of the C headers, for compilers."""
    return os.path.join(_HERE, "include")


def get_lib_path() -> str:
    """The folder of the C libraries, for linkers."""
    return os.path.join(_HERE, "lib")
