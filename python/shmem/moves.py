# SPDX-License-Identifier: Apache-2.0
"""Moving memory: put, get, signals, order, collectives, atomics.

Memory is an address (an int) or any object with the buffer protocol, whose size is then checked.
``pe`` is a process's number in the job. The remote side is named by an address of the symmetric
heap. The GIL is released while a call waits or moves much.

Besides the functions here, for each T of float, double, int8 ... int64, uint8 ... uint64 and char:
``shmem_T_p(dst, value, pe)`` and ``shmem_T_g(src, pe)`` move one element, ``shmem_T_put``,
``_get`` (dest, source, nelems, pe), ``_iput`` and ``_iget`` (dest, source, dst, sst, nelems, pe)
several. For 8, 16, 32, 64 and 128 bits, ``shmem_putB``, ``getB``, ``iputB`` and ``igetB``. For int32,
int64, uint32 and uint64: ``shmem_T_wait_until``, ``_test``, their ``_all``, ``_any``, ``_some`` and
``_vector`` forms and ``shmem_T_atomic_...``: fetch, set, swap, compare_swap, and, or, xor, add and
the fetching forms. For numbers, ``shmem_T_sum_reduce`` and prod, min, max, and, or, xor.
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
