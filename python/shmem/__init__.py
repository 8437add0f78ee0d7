# SPDX-License-Identifier: Apache-2.0
"""SHMEM: the memory of a job's processes as one, from Python.

Each process has a symmetric heap of the same size; what ``shmem_malloc`` or ``tensor`` give there
exists in every process, and each may read and write the others'.

    import shmem
    shmem.shmem_init(rank, ranks, 1 << 30)
    mine = shmem.tensor(1000, "float32")
    shmem.shmem_barrier_all()
    shmem.shmem_putmem(mine, my_array, my_array.nbytes, pe=(rank + 1) % ranks)
    shmem.shmem_barrier_all()
    shmem.shmem_finalize()

The parts, whose names this package also has:

- ``shmem.startup``: ``shmem_init``, ``shmem_finalize``, settings before the start;
- ``shmem.memory``: ``shmem_malloc`` and its relatives return addresses, ``tensor`` returns numpy's
  arrays;
- ``shmem.moves``: put, get, signals, order, barriers and collectives of bytes;
- ``shmem.typed``: elements, waits, atomics and reductions of each type, ``shmem_int32_put`` ...;
- ``shmem.teams``: the processes of the job, and teams; ``shmem.streams``: calls in a stream's
  order;
- ``shmem.types``: classes and enumerations; ``shmem.errors``: how failures are reported;
- ``shmem.construct_tensor``: tensors of PyTorch, ``aclshmem_create_tensor`` ...;
- ``shmem.names``: other generations' names, ``aclshmem_putmem`` for ``shmem_putmem``.

``shmem.core`` has the same as objects. ``with shmem.job(...)`` starts and ends. ``import *`` takes what is
listed below; ``from shmem._pyshmem import *`` also takes the names of each type.
"""

from __future__ import annotations

import contextlib as _contextlib
from collections.abc import Iterator as _Iterator

from memspan import __version__
from shmem import errors, moves, names
from shmem.construct_tensor import (
    aclshmem_create_tensor,
    aclshmem_free_tensor,
    calc_nbytes,
    construct_tensor_from_ptr,
)
from shmem.memory import (
    Address,
    as_array,
    free,
    peer_array,
    shmem_align,
    shmem_calloc,
    shmem_free,
    shmem_malloc,
    shmem_ptr,
    tensor,
)
from shmem.moves import *  # noqa: F403
from shmem.names import *  # noqa: F403
from shmem.startup import (
    register_decrypt_handler,
    set_conf_store_tls,
    set_conf_store_tls_key,
    set_extern_logger,
    set_log_level,
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
    Stream,
    shmem_getmem_on_stream,
    shmem_putmem_on_stream,
    shmem_quiet_on_stream,
    shmem_signal_op_on_stream,
    shmem_signal_wait_until_on_stream,
)
from shmem.teams import (
    TEAM_INVALID,
    TEAM_WORLD,
    get_my_pe,
    get_pe_count,
    get_team_my_pe,
    get_team_pe_count,
    my_pe,
    pe_count,
    shmem_team_get_config,
    team_destroy,
    team_my_pe,
    team_n_pes,
    team_split_2d,
    team_split_strided,
    team_translate_pe,
)
from shmem.typed import *  # noqa: F403
from shmem.types import (
    CmpOp,
    InitAttr,
    InitStatus,
    MemType,
    OpEngineType,
    OptionalAttr,
    SignalOp,
    TeamConfig,
    UniqueId,
)

__all__ = [
    "Address",
    "CmpOp",
    "InitAttr",
    "InitStatus",
    "MemType",
    "OpEngineType",
    "OptionalAttr",
    "SignalOp",
    "Stream",
    "TEAM_INVALID",
    "TEAM_WORLD",
    "TeamConfig",
    "UniqueId",
    "aclshmem_create_tensor",
    "aclshmem_free_tensor",
    "as_array",
    "calc_nbytes",
    "construct_tensor_from_ptr",
    "errors",
    "free",
    "get_my_pe",
    "get_pe_count",
    "get_team_my_pe",
    "get_team_pe_count",
    "job",
    "my_pe",
    "pe_count",
    "peer_array",
    "register_decrypt_handler",
    "set_conf_store_tls",
    "set_conf_store_tls_key",
    "set_extern_logger",
    "set_log_level",
    "shmem_align",
    "shmem_calloc",
    "shmem_finalize",
    "shmem_free",
    "shmem_get_unique_id",
    "shmem_getmem_on_stream",
    "shmem_global_exit",
    "shmem_init",
    "shmem_init_status",
    "shmem_init_using_unique_id",
    "shmem_malloc",
    "shmem_ptr",
    "shmem_putmem_on_stream",
    "shmem_quiet_on_stream",
    "shmem_set_attributes",
    "shmem_set_data_op_engine_type",
    "shmem_set_timeout",
    "shmem_signal_op_on_stream",
    "shmem_signal_wait_until_on_stream",
    "shmem_team_get_config",
    "team_destroy",
    "team_my_pe",
    "team_n_pes",
    "team_split_2d",
    "team_split_strided",
    "team_translate_pe",
    "tensor",
]
__all__ += moves.__all__
__all__ += names.__all__


@_contextlib.contextmanager
def job(
    mype: int | None = None, npes: int | None = None, mem_size: int | None = None
) -> _Iterator[None]:
    """``with job(rank, ranks, bytes_of_heap):`` starts as ``shmem_init`` does, and ends the job at the
    end. Raises ``shmem.errors.Error`` when it cannot start. After an exception inside it does not wait for
    the others."""
    raised = errors.raises_on_error()
    errors.raise_on_error(True)
    try:
        shmem_init(mype, npes, mem_size)
    finally:
        errors.raise_on_error(raised)
    yield
    shmem_finalize()


from shmem import _pyshmem  # noqa: E402: it takes all that stands above
