# SPDX-License-Identifier: Apache-2.0
"""The programs of the wheel: each function becomes the one that it is named after."""

import os
import sys
from typing import NoReturn

from memspan import _core


def path_of(name: str) -> str:
    """The program's path."""
    return os.path.join(os.path.dirname(os.path.abspath(_core.__file__)), "bin", name)


def _become(name: str) -> NoReturn:
    os.execv(path_of(name), [name, *sys.argv[1:]])


def oshrun() -> NoReturn:
    """Starts a job: ``oshrun -n RANKS PROGRAM``."""
    _become("oshrun")


def info() -> NoReturn:
    """Says what this machine and this memspan can do."""
    _become("memspan-info")


def perf() -> NoReturn:
    """Measures latency, bandwidth and rates of this machine: ``memspan-perf put -n 2``."""
    _become("memspan-perf")


def store() -> NoReturn:
    """Hosts a store by itself."""
    _become("memspan-store")


def kernels() -> NoReturn:
    """Compiles sources in AscendC: ``memspan-kernels c++ ...``."""
    _become("memspan-kernels")


def top() -> NoReturn:
    """Shows what running jobs and pools do."""
    _become("memspan-top")


def explain() -> NoReturn:
    """Prints what a message means and what to do: ``memspan-explain heap-too-large``."""
    _become("memspan-explain")
