# SPDX-License-Identifier: Apache-2.0
"""Names that the functions of `shmem` have in other generations of the interface, beside those of
``shmem.typed``: ``aclshmem_`` for ``shmem_``, and some ``aclshmemx_``."""

from __future__ import annotations

from memspan import _core
from memspan.errors import Error
from shmem import memory, moves, startup, streams, teams
from shmem.types import InitStatus, MemType

_c = _core.shmem

__all__ = [
    "SHMEM_STATUS_INVALID",
    "SHMEM_STATUS_IS_INITIALIZED",
    "SHMEM_STATUS_NOT_INITIALIZED",
    "SHMEM_STATUS_SHM_CREATED",
    "aclshmem_align",
    "aclshmem_alltoall",
    "aclshmem_barrier",
    "aclshmem_barrier_all",
    "aclshmem_broadcast",
    "aclshmem_calloc",
    "aclshmem_collect",
    "aclshmem_fcollect",
    "aclshmem_fence",
    "aclshmem_finalize",
    "aclshmem_finialize",
    "aclshmem_free",
    "aclshmem_get_unique_id",
    "aclshmem_getmem",
    "aclshmem_getmem_nbi",
    "aclshmem_getmem_on_stream",
    "aclshmem_global_exit",
    "aclshmem_info_get_name",
    "aclshmem_info_get_version",
    "aclshmem_init",
    "aclshmem_init_status",
    "aclshmem_init_using_unique_id",
    "aclshmem_malloc",
    "aclshmem_ptr",
    "aclshmem_put_signal64",
    "aclshmem_putmem",
    "aclshmem_putmem_nbi",
    "aclshmem_putmem_on_stream",
    "aclshmem_putmem_signal",
    "aclshmem_putmem_signal_nbi",
    "aclshmem_quiet",
    "aclshmem_quiet_on_stream",
    "aclshmem_set_attributes",
    "aclshmem_set_data_op_engine_type",
    "aclshmem_set_timeout",
    "aclshmem_signal_op",
    "aclshmem_signal_op_on_stream",
    "aclshmem_signal_wait_until",
    "aclshmem_signal_wait_until64",
    "aclshmem_signal_wait_until_on_stream",
    "aclshmem_sync",
    "aclshmem_team_get_config",
    "aclshmemx_finalize",
    "aclshmemx_get_heap_base",
    "aclshmemx_get_uniqueid",
    "aclshmemx_getmem_on_stream",
    "aclshmemx_init_status",
    "aclshmemx_putmem_on_stream",
    "aclshmemx_putmem_signal",
    "aclshmemx_putmem_signal_nbi",
    "aclshmemx_quiet_on_stream",
    "aclshmemx_signal_op",
    "aclshmemx_signal_op_on_stream",
    "aclshmemx_signal_wait_until_on_stream",
    "shmem_finialize",
]

# What InitStatus's values are called beside their class.
SHMEM_STATUS_NOT_INITIALIZED = InitStatus.NOT_INITIALIZED
SHMEM_STATUS_SHM_CREATED = InitStatus.SHM_CREATED
SHMEM_STATUS_IS_INITIALIZED = InitStatus.INITIALIZED
SHMEM_STATUS_INVALID = InitStatus.INVALID

# A misspelling that programs have.
shmem_finialize = startup.shmem_finalize

aclshmem_align = memory.shmem_align
aclshmem_alltoall = moves.shmem_alltoall
aclshmem_barrier = moves.shmem_barrier
aclshmem_barrier_all = moves.shmem_barrier_all
aclshmem_broadcast = moves.shmem_broadcast
aclshmem_calloc = memory.shmem_calloc
aclshmem_collect = moves.shmem_collect
aclshmem_fcollect = moves.shmem_fcollect
aclshmem_fence = moves.shmem_fence
aclshmem_free = memory.shmem_free
aclshmem_get_unique_id = startup.shmem_get_unique_id
aclshmem_getmem = moves.shmem_getmem
aclshmem_getmem_nbi = moves.shmem_getmem_nbi
aclshmem_getmem_on_stream = streams.shmem_getmem_on_stream
aclshmem_global_exit = startup.shmem_global_exit
aclshmem_info_get_name = moves.shmem_info_get_name
aclshmem_info_get_version = moves.shmem_info_get_version
aclshmem_init = startup.shmem_init
aclshmem_init_status = startup.shmem_init_status
aclshmem_init_using_unique_id = startup.shmem_init_using_unique_id
aclshmem_malloc = memory.shmem_malloc
aclshmem_ptr = memory.shmem_ptr
aclshmem_put_signal64 = moves.shmem_put_signal64
aclshmem_putmem = moves.shmem_putmem
aclshmem_putmem_nbi = moves.shmem_putmem_nbi
aclshmem_putmem_on_stream = streams.shmem_putmem_on_stream
aclshmem_putmem_signal = moves.shmem_putmem_signal
aclshmem_putmem_signal_nbi = moves.shmem_putmem_signal_nbi
aclshmem_quiet = moves.shmem_quiet
aclshmem_quiet_on_stream = streams.shmem_quiet_on_stream
aclshmem_set_attributes = startup.shmem_set_attributes
aclshmem_set_data_op_engine_type = startup.shmem_set_data_op_engine_type
aclshmem_set_timeout = startup.shmem_set_timeout
aclshmem_signal_op = moves.shmem_signal_op
aclshmem_signal_op_on_stream = streams.shmem_signal_op_on_stream
aclshmem_signal_wait_until = moves.shmem_signal_wait_until
aclshmem_signal_wait_until64 = moves.shmem_signal_wait_until64
aclshmem_signal_wait_until_on_stream = streams.shmem_signal_wait_until_on_stream
aclshmem_sync = moves.shmem_sync
aclshmem_team_get_config = teams.shmem_team_get_config

aclshmemx_get_uniqueid = startup.shmem_get_unique_id
aclshmemx_getmem_on_stream = streams.shmem_getmem_on_stream
aclshmemx_init_status = startup.shmem_init_status
aclshmemx_putmem_on_stream = streams.shmem_putmem_on_stream
aclshmemx_putmem_signal = moves.shmem_putmem_signal
aclshmemx_putmem_signal_nbi = moves.shmem_putmem_signal_nbi
aclshmemx_quiet_on_stream = streams.shmem_quiet_on_stream
aclshmemx_signal_op = moves.shmem_signal_op
aclshmemx_signal_op_on_stream = streams.shmem_signal_op_on_stream
aclshmemx_signal_wait_until_on_stream = streams.shmem_signal_wait_until_on_stream


def aclshmemx_get_heap_base(mem_type: MemType | int | None = None) -> int:
    """The address of this process's symmetric heap; the host's and the device's are one. 0 in no
    job."""
    del mem_type
    return _c.heap_base()


def _code(code: int) -> int:
    if code != 0 and _core.raises_on_error():
        raise Error(_core.last_error(), code)
    return code


def aclshmem_finalize() -> int:
    """``shmem_finalize``; returns 0, or a code when the others cannot be reached any more."""
    return _code(startup.end())


aclshmem_finialize = aclshmem_finalize


def aclshmemx_finalize(instance_id: int = 0) -> int:
    """``aclshmem_finalize`` of an instance; there is one, 0. ValueError for another."""
    if instance_id != 0:
        raise ValueError(f"instance_id is {instance_id}, allowed is 0")
    return _code(startup.end())
