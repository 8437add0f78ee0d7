# SPDX-License-Identifier: Apache-2.0
"""Names that the functions of `shmem` have in other generations of the interface, beside those of
``shmem.typed``: ``aclshmem_`` for ``shmem_``, and some ``aclshmemx_``."""

from memspan._core import shmem as _c
from shmem.memory import shmem_align, shmem_calloc, shmem_free, shmem_malloc, shmem_ptr
from shmem.moves import (
    shmem_alltoall,
    shmem_barrier,
    shmem_barrier_all,
    shmem_broadcast,
    shmem_collect,
    shmem_fcollect,
    shmem_fence,
    shmem_getmem,
    shmem_getmem_nbi,
    shmem_info_get_name,
    shmem_info_get_version,
    shmem_put_signal64,
    shmem_putmem,
    shmem_putmem_nbi,
    shmem_putmem_signal,
    shmem_putmem_signal_nbi,
    shmem_quiet,
    shmem_signal_op,
    shmem_signal_wait_until,
    shmem_signal_wait_until64,
    shmem_sync,
)
from shmem.startup import (
    shmem_finalize,
    shmem_get_unique_id,
    shmem_global_exit,
    shmem_init,
    shmem_init_status,
    shmem_init_using_unique_id,
    shmem_set_attributes,
    shmem_set_data_op_engine_type,
    shmem_set_timeout,
)
from shmem.streams import (
    shmem_getmem_on_stream,
    shmem_putmem_on_stream,
    shmem_quiet_on_stream,
    shmem_signal_op_on_stream,
    shmem_signal_wait_until_on_stream,
)
from shmem.teams import shmem_team_get_config
from shmem.types import MemType

__all__ = [
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

# A misspelling that programs have.
shmem_finialize = shmem_finalize

aclshmem_align = shmem_align
aclshmem_alltoall = shmem_alltoall
aclshmem_barrier = shmem_barrier
aclshmem_barrier_all = shmem_barrier_all
aclshmem_broadcast = shmem_broadcast
aclshmem_calloc = shmem_calloc
aclshmem_collect = shmem_collect
aclshmem_fcollect = shmem_fcollect
aclshmem_fence = shmem_fence
aclshmem_finalize = shmem_finalize
aclshmem_finialize = shmem_finalize
aclshmem_free = shmem_free
aclshmem_get_unique_id = shmem_get_unique_id
aclshmem_getmem = shmem_getmem
aclshmem_getmem_nbi = shmem_getmem_nbi
aclshmem_getmem_on_stream = shmem_getmem_on_stream
aclshmem_global_exit = shmem_global_exit
aclshmem_info_get_name = shmem_info_get_name
aclshmem_info_get_version = shmem_info_get_version
aclshmem_init = shmem_init
aclshmem_init_status = shmem_init_status
aclshmem_init_using_unique_id = shmem_init_using_unique_id
aclshmem_malloc = shmem_malloc
aclshmem_ptr = shmem_ptr
aclshmem_put_signal64 = shmem_put_signal64
aclshmem_putmem = shmem_putmem
aclshmem_putmem_nbi = shmem_putmem_nbi
aclshmem_putmem_on_stream = shmem_putmem_on_stream
aclshmem_putmem_signal = shmem_putmem_signal
aclshmem_putmem_signal_nbi = shmem_putmem_signal_nbi
aclshmem_quiet = shmem_quiet
aclshmem_quiet_on_stream = shmem_quiet_on_stream
aclshmem_set_attributes = shmem_set_attributes
aclshmem_set_data_op_engine_type = shmem_set_data_op_engine_type
aclshmem_set_timeout = shmem_set_timeout
aclshmem_signal_op = shmem_signal_op
aclshmem_signal_op_on_stream = shmem_signal_op_on_stream
aclshmem_signal_wait_until = shmem_signal_wait_until
aclshmem_signal_wait_until64 = shmem_signal_wait_until64
aclshmem_signal_wait_until_on_stream = shmem_signal_wait_until_on_stream
aclshmem_sync = shmem_sync
aclshmem_team_get_config = shmem_team_get_config

aclshmemx_get_uniqueid = shmem_get_unique_id
aclshmemx_getmem_on_stream = shmem_getmem_on_stream
aclshmemx_init_status = shmem_init_status
aclshmemx_putmem_on_stream = shmem_putmem_on_stream
aclshmemx_putmem_signal = shmem_putmem_signal
aclshmemx_putmem_signal_nbi = shmem_putmem_signal_nbi
aclshmemx_quiet_on_stream = shmem_quiet_on_stream
aclshmemx_signal_op = shmem_signal_op
aclshmemx_signal_op_on_stream = shmem_signal_op_on_stream
aclshmemx_signal_wait_until_on_stream = shmem_signal_wait_until_on_stream


def aclshmemx_get_heap_base(mem_type: MemType | int | None = None) -> int:
    """Where this process's symmetric heap begins; the host's and the device's are one. 0 in no
    job."""
    del mem_type
    return _c.heap_base()


def aclshmemx_finalize(instance_id: int = 0) -> None:
    """``shmem_finalize`` of an instance; there is one, 0. ValueError for another."""
    if instance_id != 0:
        raise ValueError(f"instance_id is {instance_id}, allowed is 0")
    shmem_finalize()
