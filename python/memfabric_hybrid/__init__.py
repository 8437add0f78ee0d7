# SPDX-License-Identifier: Apache-2.0
"""MemFabric: pools of memory that processes join and leave (``bm``), symmetric spaces (``shm``),
transfers between named endpoints (``TransferEngine``), and what they have in common."""

from memspan import __version__
from memspan.fabric import bm, shm
from memspan.fabric.common import *  # noqa: F403
from memspan.fabric.common import __all__ as _common
from memspan.fabric.engine import TransferEngine, TransferOpcode, TransferRequest

__all__ = [*_common, "TransferEngine", "TransferOpcode", "TransferRequest", "bm", "shm"]
