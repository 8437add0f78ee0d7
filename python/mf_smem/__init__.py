# SPDX-License-Identifier: Apache-2.0
"""MemFabric's pools (``bm``) and symmetric spaces (``shm``), under the package's first name."""

from memspan import __version__
from memspan.fabric import bm, shm
from memspan.fabric.common import *  # noqa: F403
from memspan.fabric.common import __all__ as _common

__all__ = [*_common, "bm", "shm"]
