# SPDX-License-Identifier: Apache-2.0
"""SHMEM with objects: buffers instead of addresses, exceptions instead of codes.

    from shmem import core
    core.init(uid=uid, rank=rank, nranks=ranks, initializer_method="uid")
    mine = core.buffer(1 << 20)
    core.put(mine, source, remote_pe=1)
    core.free(mine)
    core.finalize()

A ``stream`` is a ``shmem.Stream`` (or its int); None and 0 are the calling thread.
"""

from typing import SupportsInt

from memspan import _core
from memspan.errors import Error as AclshmemError
from memspan.errors import InvalidArgument as AclshmemInvalid
from memspan.types import Buffer as _Bytes
from shmem import startup
from shmem.core import direct
from shmem.core.direct import ComparisonType, InitStatus, SignalOp
from shmem.types import UniqueId

_c = _core.shmem

_USUAL_HEAP = 1 << 30

__all__ = [
    "AclshmemError",
    "AclshmemInvalid",
    "Buffer",
    "ComparisonType",
    "InitStatus",
    "SignalOp",
    "buffer",
    "direct",
    "finalize",
    "free",
    "get",
    "get_peer_buffer",
    "get_unique_id",
    "get_version",
    "init",
    "put",
    "put_signal",
    "quiet",
    "signal_op",
    "signal_wait",
]


class Buffer:
    """``length`` bytes of the symmetric heap at ``addr``; itself a writable buffer's source
    (``memoryview(b.view())``, ``numpy.asarray(b.view())``)."""

    def __init__(self, addr: int, length: int, owner: "Buffer | None" = None) -> None:
        self.addr = addr
        self.length = length
        self._owner = owner  # of a peer's: keeps the local one

    def view(self) -> memoryview:
        """The bytes as a memoryview. BufferError when they have been given back."""
        return memoryview(_core.Address(self.addr))[: self.length]

    def __int__(self) -> int:
        return int(self.addr)

    __index__ = __int__

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"Buffer(addr={int(self.addr):#x}, length={self.length})"


# What stands for memory here, beside a Buffer: an object with the buffer protocol.
_Memory = Buffer | _Bytes


def _check(code: int) -> None:
    if code != 0:
        wrong = code in (-1, -2)
        raise (AclshmemInvalid if wrong else AclshmemError)(_core.last_error(), code)


def get_version() -> str:
    """``libaclshmem_version=MAJOR.MINOR``."""
    major, minor = _c.shmem_info_get_version()
    return f"libaclshmem_version={major}.{minor}"


def get_unique_id(empty: bool = False) -> UniqueId:
    """What the others need to find this process; ``empty``: room for one that will be received.
    AclshmemError when it cannot be had."""
    if empty:
        return UniqueId(b"")
    made = startup.shmem_get_unique_id()
    if made is None:
        raise AclshmemError(_core.last_error())
    return UniqueId(made)


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
    _check(startup.shmem_init_using_unique_id(rank, nranks, heap, uid))


def finalize() -> None:
    """End; waits for all. AclshmemError when they cannot be met any more."""
    startup.shmem_finalize()


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """``size`` bytes of the symmetric heap; all processes must call it, and ``free`` alike. AclshmemError
    when there are none."""
    del release, except_on_del  # nothing is given back behind the program's back
    address = _c.malloc(size)
    if address is None:
        raise AclshmemError(_core.last_error() or f"size is {size}, allowed is 1 and more")
    return Buffer(address, size)


def free(buf: Buffer) -> None:
    """Gives a buffer back; all must call it. AclshmemInvalid for a peer's."""
    if buf._owner is not None:
        raise AclshmemInvalid("a peer's buffer is given back with this process's own")
    _c.free(buf.addr)
    buf.length = 0


def get_peer_buffer(buf: Buffer, pe: int) -> Buffer:
    """``pe``'s copy, which can be used directly; AclshmemError when it cannot."""
    address = _c.ptr(buf.addr, pe)
    if address is None:
        raise AclshmemError(f"process {pe} has no copy that can be used directly")
    return Buffer(address, buf.length, owner=buf)


def _length(dst: _Memory, src: _Memory) -> int:
    lengths = [len(memoryview(b).cast("B")) if not isinstance(b, Buffer) else len(b) for b in (dst, src)]
    if lengths[1] > lengths[0]:
        raise AclshmemInvalid(f"src has {lengths[1]} bytes, and dst only {lengths[0]}")
    return lengths[1]


def _place(memory: _Memory) -> int | _Bytes:
    return memory.addr if isinstance(memory, Buffer) else memory


def put(
    dst: _Memory, src: _Memory, remote_pe: int = -1, stream: SupportsInt | None = None
) -> None:
    """All bytes of ``src`` here to ``dst`` at ``remote_pe``. AclshmemInvalid when ``dst`` has fewer, ValueError
    for a process that is not there."""
    size = _length(dst, src)
    _check(_c.putmem_on_stream(_place(dst), _place(src), size, remote_pe, int(stream or 0)))


def get(
    dst: _Memory, src: _Memory, remote_pe: int = -1, stream: SupportsInt | None = None
) -> None:
    """All bytes of ``src`` at ``remote_pe`` to ``dst`` here. Raises as ``put``."""
    size = _length(dst, src)
    _check(_c.getmem_on_stream(_place(dst), _place(src), size, remote_pe, int(stream or 0)))


def put_signal(
    dst: _Memory,
    src: _Memory,
    signal_var: _Memory,
    signal_val: int,
    signal_operation: int,
    remote_pe: int = -1,
    stream: SupportsInt | None = None,
) -> None:
    """``put``, then the 32-bit word ``signal_var`` there is set to or grows by ``signal_val``
    (``SignalOp``). Raises as ``put``."""
    put(dst, src, remote_pe, stream)
    signal_op(signal_var, signal_val, signal_operation, remote_pe, stream)


def signal_op(
    signal_var: _Memory,
    signal_val: int,
    signal_operation: int,
    remote_pe: int = -1,
    stream: SupportsInt | None = None,
) -> None:
    """The 32-bit word ``signal_var`` there is set to or grows by ``signal_val`` (``SignalOp``). ValueError
    for another operation."""
    _check(
        _c.signal_op_on_stream(
            _place(signal_var), signal_val, int(signal_operation), remote_pe, int(stream or 0)
        )
    )


def signal_wait(
    signal_var: _Memory,
    signal_val: int,
    signal_operation: int,
    stream: SupportsInt | None = None,
) -> None:
    """Until the 32-bit word here compares with ``signal_val`` so (``ComparisonType``)."""
    _check(
        _c.signal_wait_until_on_stream(
            _place(signal_var), int(signal_operation), signal_val, int(stream or 0)
        )
    )


def quiet(stream: SupportsInt | None = None) -> None:
    """Until all that this process put is there."""
    _check(_c.quiet_on_stream(int(stream or 0)))
