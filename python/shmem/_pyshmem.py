# SPDX-License-Identifier: Apache-2.0
"""All names of `shmem` in one module, as programs of the latest generation import them."""

from shmem import *  # noqa: F403
from shmem.names import *  # noqa: F403
from shmem.typed import *  # noqa: F403
