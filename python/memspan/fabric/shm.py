# SPDX-License-Identifier: Apache-2.0
"""Share Memory: symmetric memory of a group of ranks, and the group's barriers and all-gathers.

    shm.initialize("tcp://127.0.0.1:8570", world_size, rank, device_id, shm.ShmConfig())
    space = shm.create(0, world_size, rank, 1 << 20)
    space.barrier()

Functions that return int give 0 or a code below 0; ``get_last_err_msg()`` says why.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable

from memspan import _core
from memspan.errors import Error, PeerFailed, Timeout
from memspan.owner import Owner
from memspan.types import Buffer

_c = _core.smem

_SECONDS = 120
_TIMEOUT = -2004
_NOT_CONNECTED = -2014

__all__ = ["ShareMemory", "ShmConfig", "ShmDataOpType", "create", "initialize", "uninitialize"]


class ShmDataOpType(enum.IntFlag):
    """Ways to move data: loads and stores, copy engine, network."""

    MTE = 1
    SDMA = 2
    RDMA = 4


@dataclasses.dataclass
class ShmConfig:
    """How this process becomes a member; the time-outs are in seconds, 1 and more."""

    init_timeout: int = _SECONDS
    create_timeout: int = _SECONDS
    operation_timeout: int = _SECONDS
    start_store: bool = True
    flags: int = 0


def initialize(
    store_url: str, world_size: int, rank_id: int, device_id: int, config: ShmConfig
) -> int:
    """Becomes rank ``rank_id`` of ``world_size``, over the store at ``store_url`` (``tcp://ip:port``). Returns
    0 or a code."""
    return _c.shm_init(store_url, world_size, rank_id, device_id, config)


def uninitialize(flags: int = 0) -> None:
    """Ends it, and destroys what spaces are left."""
    _c.shm_uninit(flags)


def create(
    id: int,
    rank_size: int,
    rank_id: int,
    local_mem_size: int,
    data_op_type: ShmDataOpType | int = ShmDataOpType.MTE,
    flags: int = 0,
) -> "ShareMemory":
    """Space ``id`` (0 to 63) of ``rank_size`` processes, each with ``local_mem_size`` bytes; all of
    them call it. Raises RuntimeError when it cannot be made."""
    handle, gva = _c.shm_create(id, rank_size, rank_id, local_mem_size, int(data_op_type), flags)
    if handle == 0:
        raise RuntimeError(f"create shm failed! {_c.get_last_err_msg()}")
    return ShareMemory(handle, gva)


def _check(code: int) -> None:
    if code == 0:
        return
    error = {_TIMEOUT: Timeout, _NOT_CONNECTED: PeerFailed}.get(code, Error)
    raise error(_c.get_last_err_msg(), code)


class ShareMemory(Owner):
    """A space, as this process sees it; ``create`` makes it. See ``Owner``
    for its end."""

    def __init__(self, handle: int, gva: int) -> None:
        self._handle = handle
        self._gva = gva

    def destroy(self, flags: int = 0) -> int:
        """Ends it here. Returns 0 or a code."""
        code: int | None = self._end(lambda handle: _c.shm_destroy(handle, flags))
        return code or 0

    @property
    def local_rank(self) -> int:
        """This process's rank in the space."""
        return _c.shm_get_global_rank(self._handle)

    @property
    def rank_size(self) -> int:
        """How many ranks it has."""
        return _c.shm_get_global_rank_size(self._handle)

    @property
    def gva(self) -> int:
        """The address of rank 0's part; the others follow, ``local_mem_size`` each."""
        return self._gva

    def query_support_data_operation(self) -> int:
        """The ways to move data that there are: bits of ``ShmDataOpType``."""
        return _c.shm_query_support_data_operation()

    def set_context(self, context: bytes | Buffer) -> int:
        """Keeps 1 to 65536 bytes for kernels. Returns 0 or a code."""
        return _c.shm_set_extra_context(self._handle, bytes(context))

    def get_context(self) -> bytes:
        """The bytes that ``set_context`` set; b"" by default. Raises ``memspan.Error`` when it
        fails."""
        code, context = _c.shm_get_extra_context(self._handle)
        _check(code)
        return context

    def barrier(self) -> int:
        """Waits until all ranks have arrived, at most ``ShmConfig.operation_timeout`` seconds.
        Returns 0 or a code."""
        return _c.shm_control_barrier(self._handle)

    def all_gather(self, local_data: bytes | Buffer) -> bytes:
        """The bytes that all ranks passed (1 to 65536, as many each), one after the other. Raises
        ``memspan.Timeout`` when not all came in time, ``PeerFailed`` when one has gone, else
        ``Error``."""
        code, everything = _c.shm_control_allgather(self._handle, bytes(local_data))
        _check(code)
        return everything

    def subgroup_barrier(self, key: str, rank_size: int, rank_id: int) -> int:
        """Waits until ``rank_size`` processes with the same key have arrived. Returns 0 or a
        code."""
        return _c.shm_subgroup_barrier(self._handle, key, rank_size, rank_id)

    def subgroup_all_gather(
        self, key: str, rank_size: int, rank_id: int, local_data: bytes | Buffer
    ) -> bytes:
        """``all_gather`` among the ``rank_size`` processes with the same key, by the ranks that they give
        themselves there. Raises as that."""
        code, everything = _c.shm_subgroup_allgather(
            self._handle, key, rank_size, rank_id, bytes(local_data)
        )
        _check(code)
        return everything

    def topology_can_reach(
        self, remote_rank: int, reach_info: list[int] | Buffer | int | None = None
    ) -> ShmDataOpType | int:
        """Without ``reach_info``: the ways (``ShmDataOpType``) in which a rank can be reached.
        With a list or a writable buffer of 4 bytes, they are put there and 0 or a code returned."""
        code, ways = _c.shm_topology_can_reach(self._handle, remote_rank)
        if reach_info is None:
            _check(code)
            return ShmDataOpType(ways)
        if isinstance(reach_info, list):
            reach_info[:] = [ways]
        elif not isinstance(reach_info, int):
            memoryview(reach_info).cast("B")[:4] = ways.to_bytes(4, "little")
        return code

    def atomic_alloc_value(self, limit: int) -> int:
        """A number below ``limit`` (1 to 1024) that no other member has. Raises ``memspan.Error`` when all
        are taken."""
        code, number = _c.shm_atomic_alloc_value(self._handle, limit)
        _check(code)
        return number

    def atomic_release_value(self, value: int) -> int:
        """Gives back what ``atomic_alloc_value`` gave. Returns 0 or a code."""
        return _c.shm_atomic_release_value(self._handle, value)

    def register_exit(self, exit: Callable[[int], object] | None) -> int:
        """``exit(status)`` is called, on a thread of the library's, when a member calls ``global_exit``; None:
        nothing. Returns 0 or a code."""
        return _c.shm_register_exit(self._handle, exit)

    def global_exit(self, status: int) -> None:
        """Calls the functions that members registered with ``register_exit``, also in this
        process."""
        _c.shm_global_exit(self._handle, status)
