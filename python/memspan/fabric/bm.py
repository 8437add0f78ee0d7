# SPDX-License-Identifier: Apache-2.0
"""Big Memory: pools that processes give memory to, at the same addresses in all of them.

    config = bm.BmConfig()
    bm.initialize("tcp://127.0.0.1:8570", world_size, device_id, config)
    pool = bm.create(0, local_dram_size=64 << 20, local_hbm_size=0)
    pool.join()
    pool.wait_members(2)
    there = pool.peer_rank_ptr(peer, bm.BmMemType.HOST)
    pool.copy_data(array.ctypes.data, there, array.nbytes, bm.BmCopyType.H2G)

Addresses are ints, sizes are in bytes. Memory of this process may also be given as an object with
the buffer protocol. Functions that return int give 0 or a code below 0 (``get_last_err_msg()`` says
why). Any thread may call anything; the GIL is released while a call waits or copies much.
"""

from __future__ import annotations

import dataclasses
import enum

from memspan import _core
from memspan.fabric.common import TlsConfig
from memspan.owner import Owner
from memspan.types import Memory, Numbers

_c = _core.smem

_SECONDS = 120
_store_url = ""  # of this process, while it is a member

__all__ = [
    "BigMemory",
    "BmConfig",
    "BmCopyType",
    "BmDataOpType",
    "BmMemType",
    "CopyData2DParams",
    "bm_rank_id",
    "create",
    "create2",
    "initialize",
    "store_url",
    "uninitialize",
]


class BmMemType(enum.IntEnum):
    """Which memory: this process's, or a space of the pool."""

    LOCAL_DEVICE = 0
    LOCAL_HOST = 1
    DEVICE = 2
    HOST = 3


class BmCopyType(enum.IntEnum):
    """From where to where: L device memory and H host memory of this process, G the pool, GH its
    host space; AUTO looks at the addresses."""

    L2G = 0
    G2L = 1
    G2H = 2
    H2G = 3
    L2GH = 4
    GH2L = 5
    GH2H = 6
    H2GH = 7
    G2G = 8
    AUTO = 9


class BmDataOpType(enum.IntFlag):
    """Ways to move data, as preferences; combined by ``|``."""

    SDMA = 1
    HOST_RDMA = 2
    HOST_TCP = 4
    DEVICE_RDMA = 8
    HOST_URMA = 16


@dataclasses.dataclass
class BmConfig:
    """How this process becomes a member; the time-outs are in seconds, 1 and more."""

    init_timeout: int = _SECONDS
    create_timeout: int = _SECONDS
    operation_timeout: int = _SECONDS
    start_store: bool = True
    start_store_only: bool = False
    dynamic_world_size: bool = False
    unified_address_space: bool = True
    auto_ranking: bool = True
    rank_id: int = 65535
    flags: int = 0
    nic: str = ""
    hcom_tls: TlsConfig | None = None
    store_tls: TlsConfig | None = None

    def set_nic(self, nic: str) -> None:
        """Which network interface: ``tcp://IP[/MASK]:PORT``, up to 63 characters."""
        self.nic = nic

    @property
    def hcom_url(self) -> str:
        """The older name of what ``set_nic`` sets."""
        return self.nic

    @hcom_url.setter
    def hcom_url(self, url: str) -> None:
        self.nic = url


@dataclasses.dataclass
class CopyData2DParams:
    """``height`` rows of ``width`` bytes, which begin ``spitch`` and ``dpitch`` bytes apart."""

    src: int = 0
    spitch: int = 0
    dest: int = 0
    dpitch: int = 0
    width: int = 0
    height: int = 0


def initialize(store_url: str, world_size: int, device_id: int, config: BmConfig) -> int:
    """Becomes a member of up to ``world_size``, over the store at ``store_url`` (``tcp://ip:port``). Returns
    0 or a code; ValueError for texts of the configuration that are too long."""
    global _store_url
    code = _c.bm_init(store_url, world_size, device_id, config)
    if code == 0 and not _store_url:
        _store_url = store_url
    return code


def uninitialize(flags: int = 0) -> None:
    """Ends it, and destroys what pools are left."""
    global _store_url
    _store_url = ""
    _c.bm_uninit(flags)


def store_url() -> str:
    """Over which store this process is a member; "" before ``initialize``."""
    return _store_url


def bm_rank_id() -> int:
    """This process's rank; 4294967295 before ``initialize``."""
    return _c.bm_get_rank_id()


def _handle(handle: int) -> "BigMemory":
    if handle == 0:
        raise RuntimeError(f"create bm handle failed. {_c.get_last_err_msg()}")
    return BigMemory(handle)


def create(
    id: int,
    local_dram_size: int,
    local_hbm_size: int,
    data_op_type: BmDataOpType | int = BmDataOpType.SDMA,
    flags: int = 0,
) -> "BigMemory":
    """A pool to which this process gives so many bytes of host and device memory, as do all others.
    Raises RuntimeError when it cannot be made."""
    return _handle(_c.bm_create(id, 0, int(data_op_type), local_dram_size, local_hbm_size, flags))


def create2(
    id: int,
    local_dram_size: int,
    max_dram_size: int,
    local_hbm_size: int = 0,
    max_hbm_size: int = 0,
    data_op_type: BmDataOpType | int = BmDataOpType.SDMA,
    enable_56bits_gva: bool = False,
    flags: int = 0,
    shm_fd: int = -1,
    tag: str = "",
    tag_op_info: str = "",
) -> "BigMemory":
    """A pool to which processes give different sizes, in bytes, up to the largest ones, which must
    be equal in all. ``shm_fd``: the host memory is that descriptor's. Raises RuntimeError when it
    cannot be made, ValueError for tags that are too long."""
    del enable_56bits_gva  # addresses have room for every pool
    if shm_fd >= 0:
        flags |= 1 << 8
    return _handle(
        _c.bm_create2(
            id,
            max_dram_size,
            max_hbm_size,
            local_dram_size,
            local_hbm_size,
            int(data_op_type),
            flags,
            tag,
            tag_op_info,
            shm_fd,
        )
    )


class BigMemory(Owner):
    """A pool, as this process sees it; ``create`` makes it. See ``Owner``
    for its end."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def destroy(self) -> None:
        """Ends it in this process; other members continue."""
        self._end(_c.bm_destroy)

    def join(self, flags: int = 0) -> int:
        """From now on others reach what this process gives. Returns 0 or a code."""
        return _c.bm_join(self._handle, flags)[0]

    def wait_members(self, count: int, timeout_ms: int = _SECONDS * 1000) -> int:
        """Waits until ``count`` members, this process included, are in the pool at the same time and
        copies reach their memory. Returns 0 or a code: -2004 if they do not come in time, -2014 if a
        member leaves or dies during the call, or the store ends. memspan's own."""
        return _c.pool_wait_members(self._handle, count, timeout_ms)

    def wait_rank(self, rank: int, timeout_ms: int = _SECONDS * 1000) -> int:
        """Waits until ``rank`` is in the pool and copies reach its memory. Returns 0 or a code, as
        ``wait_members``. memspan's own."""
        return _c.pool_wait_rank(self._handle, rank, timeout_ms)

    def leave(self, flags: int = 0) -> int:
        """Others no longer reach what this process gives; it may join again. Returns 0 or a code."""
        return _c.bm_leave(self._handle, flags)

    def _usual_space(self) -> BmMemType:
        has_device = _c.bm_get_local_mem_size_by_mem_type(self._handle, BmMemType.DEVICE) > 0
        return BmMemType.DEVICE if has_device else BmMemType.HOST

    def local_mem_size(self, mem_type: BmMemType | int | None = None) -> int:
        """How many bytes this process gives; 0 when it fails. Without a type: of device memory where
        the pool has some of this process, else of host memory."""
        mem_type = self._usual_space() if mem_type is None else mem_type
        return _c.bm_get_local_mem_size_by_mem_type(self._handle, int(mem_type))

    def peer_rank_ptr(self, peer_rank: int, mem_type: BmMemType | int | None = None) -> int:
        """The address of a rank's memory, the same in all processes; 0 if it fails. Without a type
        as ``local_mem_size``."""
        mem_type = self._usual_space() if mem_type is None else mem_type
        return _c.bm_ptr_by_mem_type(self._handle, int(mem_type), peer_rank)

    def get_rank_id_by_gva(self, gva: int) -> int:
        """Whose memory an address of the pool is; 4294967295 when it is in none."""
        return _c.bm_get_rank_id_by_gva(self._handle, gva)

    def register(self, addr: Memory, size: int) -> int:
        """``size`` bytes of this process that copies will use often. Returns 0 or a code."""
        return _c.bm_register_user_mem(self._handle, addr, size)

    def unregister(self, addr: Memory) -> int:
        """Memory that was registered is used no more. Returns 0 or a code."""
        return _c.bm_unregister_user_mem(self._handle, addr)

    def copy_data(
        self,
        src_ptr: Memory,
        dst_ptr: Memory,
        size: int,
        type: BmCopyType | int,
        flags: int = 0,
        stream: int = 0,
    ) -> int:
        """``size`` bytes from ``src_ptr`` to ``dst_ptr``; ``type`` is a ``BmCopyType``. With flag
        bit 0 it runs in the background until ``wait()``. Returns 0 or a code; ValueError when an
        object has fewer bytes or may not be written to."""
        del stream  # of devices
        return _c.bm_copy(self._handle, src_ptr, dst_ptr, size, int(type), flags)

    def copy_data_batch(
        self,
        src_addrs: Numbers,
        dst_addrs: Numbers,
        sizes: Numbers,
        count: int,
        type: BmCopyType | int,
        flags: int = 0,
        stream: int = 0,
    ) -> int:
        """``count`` copies at once, by lists of ints or arrays of 64-bit integers. Returns 0 or a
        code. ValueError when a list is shorter than ``count``."""
        del stream
        return _c.bm_copy_batch(self._handle, src_addrs, dst_addrs, sizes, count, int(type), flags)

    def copy_data_batch_partial_succeed(
        self,
        src_addrs: Numbers,
        dst_addrs: Numbers,
        sizes: Numbers,
        count: int,
        type: BmCopyType | int,
        flags: int = 0,
    ) -> tuple[int, list[int]]:
        """``copy_data_batch``, whatever becomes of single copies: (code, codes of each). If it raises
        (``raise_on_error``), the exception's ``results`` has the codes."""
        return _c.bm_copy_batch_partial_succeed(
            self._handle, src_addrs, dst_addrs, sizes, count, int(type), flags
        )

    def copy_data_2d(
        self, params: CopyData2DParams, type: BmCopyType | int, flags: int = 0
    ) -> int:
        """The rows of a ``CopyData2DParams``. Returns 0 or a code; ValueError for rows wider than a pitch."""
        if params.width > min(params.spitch, params.dpitch) and params.height > 1:
            raise ValueError(
                f"width is {params.width}, allowed are up to the smaller pitch, "
                f"{min(params.spitch, params.dpitch)}"
            )
        rows = range(params.height)
        return self.copy_data_batch(
            [params.src + row * params.spitch for row in rows],
            [params.dest + row * params.dpitch for row in rows],
            [params.width] * params.height,
            params.height,
            type,
            flags,
        )

    def wait(self) -> int:
        """Until this thread's copies in the background are done. Returns 0 or the code of the first
        that failed."""
        return _c.bm_wait(self._handle)
