# SPDX-License-Identifier: Apache-2.0
"""SHMEM with objects: buffers instead of addresses, exceptions instead of codes.

    from shmem import core
    core.init(uid=uid, rank=rank, nranks=ranks, initializer_method="uid")
    mine = core.buffer(1 << 20)
    core.put(mine, source, remote_pe=1)
    core.free(mine)
    core.finalize()

The parts: ``init_final`` (start and end), ``memory``, ``rma``, ``direct`` (queries), ``utils``. A ``stream``
is a ``shmem.Stream`` (or its int); None and 0 are the calling thread.
"""

from shmem.core import direct, init_final, memory, rma, utils
from shmem.core.direct import ComparisonType, InitStatus, SignalOp
from shmem.core.init_final import UniqueID, finalize, get_unique_id, get_version, init
from shmem.core.memory import buffer, free, get_peer_buffer
from shmem.core.rma import get, put, put_signal, quiet, signal_op, signal_wait
from shmem.core.utils import AclshmemError, AclshmemInvalid, Buffer

__all__ = [
    "AclshmemError",
    "AclshmemInvalid",
    "Buffer",
    "ComparisonType",
    "InitStatus",
    "SignalOp",
    "UniqueID",
    "buffer",
    "direct",
    "finalize",
    "free",
    "get",
    "get_peer_buffer",
    "get_unique_id",
    "get_version",
    "init",
    "init_final",
    "memory",
    "put",
    "put_signal",
    "quiet",
    "rma",
    "signal_op",
    "signal_wait",
    "utils",
]
