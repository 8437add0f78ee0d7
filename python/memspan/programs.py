# SPDX-License-Identifier: Apache-2.0
"""The programs of the wheel: each function becomes the one that it is named after."""

import os
import sys


def _become(name):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", name)
    os.execv(path, [name, *sys.argv[1:]])


def oshrun():
    _become("oshrun")


def info():
    _become("memspan-info")


def store():
    _become("memspan-store")
