# SPDX-License-Identifier: Apache-2.0
"""MemFabric's pools (``bm``) and symmetric spaces (``shm``), under the package's first name."""

from memspan import __version__
from memspan.fabric import bm, common, shm
from memspan.fabric.common import *  # noqa: F403

__all__ = ["bm", "shm"]
__all__ += common.__all__
