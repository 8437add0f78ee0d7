# SPDX-License-Identifier: Apache-2.0
"""How `shmem` reports failures.

Functions that give a code give 0 or a negative number, and those that give memory give None, as in
the interface that they follow; ``last_error()`` says why. After ``raise_on_error(True)`` they raise
instead. Functions without a result always raise, and a wrong argument that is found before the call
is a ValueError or TypeError in any case.
"""

from memspan._core import last_error, raise_on_error, raises_on_error
from memspan.errors import Error, InvalidArgument, OutOfMemory, PeerFailed, Timeout

__all__ = [
    "Error",
    "InvalidArgument",
    "OutOfMemory",
    "PeerFailed",
    "Timeout",
    "last_error",
    "raise_on_error",
    "raises_on_error",
]
