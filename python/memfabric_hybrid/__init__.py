# SPDX-License-Identifier: Apache-2.0
"""MemFabric: pools of memory that processes join and leave (``bm``), symmetric spaces (``shm``),
transfers between named endpoints (``TransferEngine``), and what they have in common."""

from memspan import __version__
from memspan.fabric import bm, common, shm
from memspan.fabric.common import *  # noqa: F403
from memspan.fabric.engine import TransferEngine, TransferOpcode, TransferRequest

__all__ = ["TransferEngine", "TransferOpcode", "TransferRequest", "bm", "shm"]
__all__ += common.__all__
