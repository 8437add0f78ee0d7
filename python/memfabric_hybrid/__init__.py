# SPDX-License-Identifier: Apache-2.0
"""MemFabric: pools of memory that processes join and leave (``bm``), symmetric spaces (``shm``),
transfers between named endpoints (``TransferEngine``), and what they have in common; of ``offload``, which
is for NPUs, the names."""

from memspan import __version__
from memspan.fabric import bm, common, engine, offload, shm
from memspan.fabric.common import *  # noqa: F403
from memspan.fabric.engine import *  # noqa: F403

__all__ = ["bm", "offload", "shm"]
__all__ += common.__all__
__all__ += engine.__all__
