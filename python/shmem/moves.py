# SPDX-License-Identifier: Apache-2.0
"""Moving memory: put, get, signals, order, collectives, atomics.

Memory is an address (an int) or any object with the buffer protocol, whose size is then checked.
Sizes are in bytes. ``pe`` is a process's number in the job, ``team`` a team's number, 0 for all. The
remote side is named by an address of the symmetric heap: this process's own, which stands for the
copy at ``pe``. The GIL is released while a call waits or moves much.

Every function raises ValueError, before anything moves, for a ``pe`` or ``team`` that does not
exist, memory that is not in the symmetric heap or has too few bytes, and before the start;
TypeError for an argument of another type. Waits raise ``shmem.errors.PeerFailed`` when a process
that they need has died.

Elements, waits, atomics and reductions of each type are in ``shmem.typed``.
"""

from memspan._core.shmem import (
    get_ffts_config,
    mte_set_ub_params,
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

__all__ = [
    "get_ffts_config",
    "mte_set_ub_params",
    "shmem_alltoall",
    "shmem_barrier",
    "shmem_barrier_all",
    "shmem_broadcast",
    "shmem_collect",
    "shmem_fcollect",
    "shmem_fence",
    "shmem_getmem",
    "shmem_getmem_nbi",
    "shmem_info_get_name",
    "shmem_info_get_version",
    "shmem_put_signal64",
    "shmem_putmem",
    "shmem_putmem_nbi",
    "shmem_putmem_signal",
    "shmem_putmem_signal_nbi",
    "shmem_quiet",
    "shmem_signal_op",
    "shmem_signal_wait_until",
    "shmem_signal_wait_until64",
    "shmem_sync",
]
