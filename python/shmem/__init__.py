# SPDX-License-Identifier: Apache-2.0
"""SHMEM: the memory of a job's processes as one, from Python.

Each process has a symmetric heap of the same size; what ``shmem_malloc`` or ``tensor`` give there
exists in every process, and each may read and write everybody's.

    import shmem
    shmem.shmem_init(rank, ranks, 1 << 30)
    mine = shmem.tensor(1000, "float32")
    shmem.shmem_barrier_all()
    shmem.shmem_putmem(mine, my_array, my_array.nbytes, pe=(rank + 1) % ranks)
    shmem.shmem_barrier_all()
    shmem.shmem_finalize()

Start and end are in ``shmem.startup``, the heap in ``shmem.memory``, teams in ``shmem.teams``, all
that moves memory in ``shmem.moves``; everything is here, too, under several generations of names
(``shmem_finalize``, ``shmem_finialize``, ``aclshmem_finalize``...). ``shmem.core`` has the same as
objects. ``shmem.errors`` says how failures are reported. ``with shmem.job(...)`` starts and ends.
"""

import contextlib as _contextlib

from memspan import __version__
from memspan._core import shmem as _c
from shmem import errors
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
from shmem.moves import (
    shmem_putmem_signal,
    shmem_putmem_signal_nbi,
    shmem_signal_op,
)
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


@_contextlib.contextmanager
def job(mype, npes, mem_size):
    """``with job(rank, ranks, bytes_of_heap):`` starts, and ends the job at the end. Raises when it
    cannot start. After an exception inside it does not wait for the others."""
    raised = errors.raises_on_error()
    errors.raise_on_error(True)
    try:
        shmem_init(mype, npes, mem_size)
    finally:
        errors.raise_on_error(raised)
    yield
    shmem_finalize()


# ---- names

# A misspelling that programs have.
shmem_finialize = shmem_finalize

# Elements, waits, atomics and reductions of each type: shmem_int32_p ...
_BY_TYPE = ("float", "double", "char", "int", "uint")
_BY_SIZE = ("put", "get", "iput", "iget")
for _name in dir(_c):
    _is_sized = _name.startswith(_BY_SIZE) and _name[-1].isdigit()
    if _name.startswith(_BY_TYPE) or (_is_sized and not _name.endswith("signal64")):
        globals().setdefault("shmem_" + _name, getattr(_c, _name))
for _bits in (8, 16, 32, 64, 128):
    for _way in ("put", "get"):
        globals()[f"shmem_{_way}{_bits}_nbi"] = getattr(_c, f"{_way}{_bits}")

# The names of the latest generation.
for _name in [name for name in globals() if name.startswith("shmem_")]:
    globals()["acl" + _name] = globals()[_name]
aclshmemx_init_status = shmem_init_status
aclshmemx_get_uniqueid = shmem_get_unique_id
aclshmemx_putmem_signal = shmem_putmem_signal
aclshmemx_putmem_signal_nbi = shmem_putmem_signal_nbi
for _name in [name for name in globals() if name.endswith("_on_stream")]:
    if _name.startswith("shmem_"):
        globals()["aclshmemx" + _name.removeprefix("shmem")] = globals()[_name]
aclshmemx_signal_op = shmem_signal_op


def aclshmemx_get_heap_base(mem_type=None):
    """Where this process's symmetric heap begins, an int; the host's and the device's are one."""
    del mem_type
    return _c.heap_base()


def aclshmemx_finalize(instance_id=0):
    """``shmem_finalize`` of an instance; there is one, 0."""
    if instance_id != 0:
        raise ValueError(f"instance_id is {instance_id}, allowed is 0")
    shmem_finalize()


__all__ = [name for name in globals() if not name.startswith("_")]
