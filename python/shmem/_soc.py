# SPDX-License-Identifier: Apache-2.0
"""The processor of this machine. CANN SHMEM chooses among libraries for chips by it; there is one
here."""

import platform


def detect_soc() -> str:
    """The processor's architecture, ``x86_64`` or ``aarch64``."""
    return platform.machine()


def select_backend() -> str:
    """The device of kernels: ``host``."""
    return "host"
