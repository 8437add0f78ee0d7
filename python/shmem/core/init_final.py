# SPDX-License-Identifier: Apache-2.0
"""Start and end, with exceptions instead of codes."""

from __future__ import annotations

from memspan import _core
from shmem import startup
from shmem.core.utils import AclshmemError, AclshmemInvalid, check
from shmem.types import UniqueId

__all__ = ["UniqueID", "finalize", "get_unique_id", "get_version", "init"]

_c = _core.shmem
_USUAL_HEAP = 1 << 30

UniqueID = UniqueId


def get_version() -> str:
    """``libaclshmem_version=MAJOR.MINOR``."""
    major, minor = _c.shmem_info_get_version()
    return f"libaclshmem_version={major}.{minor}"


def get_unique_id(empty: bool = False) -> bytes | UniqueId:
    """The data that others need to connect to this process, as bytes; ``empty``: room for one that
    will be received, whose ``internal`` is then set. AclshmemError when it cannot be had."""
    if empty:
        return UniqueId()
    made = startup.shmem_get_unique_id()
    if made is None:
        raise AclshmemError(_core.last_error())
    return made


def init(
    device: object = None,
    uid: UniqueId | bytes | None = None,
    rank: int | None = None,
    nranks: int | None = None,
    mpi_comm: None = None,
    initializer_method: str = "",
    mem_size: int | None = None,
) -> None:
    """Start as process ``rank`` of ``nranks`` by a unique id; ``mem_size`` bytes of heap each (1 GiB
    when not said). ``device`` means nothing here. AclshmemInvalid for arguments that are missing or another
    method than "uid", AclshmemError when the start fails."""
    del device
    if mpi_comm is not None or initializer_method not in ("", "uid"):
        raise AclshmemInvalid(
            f'initializer_method is "{initializer_method}", allowed is "uid" (without mpi_comm)'
        )
    if uid is None or rank is None or nranks is None:
        raise AclshmemInvalid("uid, rank and nranks are needed")
    heap = _USUAL_HEAP if mem_size is None else mem_size
    check(startup.shmem_init_using_unique_id(rank, nranks, heap, uid))


def finalize() -> None:
    """End; waits for all. AclshmemError when they cannot be reached any more."""
    startup.shmem_finalize()
