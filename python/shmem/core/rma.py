# SPDX-License-Identifier: Apache-2.0
"""Put, get, signals and order on buffers.

A ``stream`` is a ``shmem.Stream`` (or its int); None and 0 are the calling thread.
"""

from __future__ import annotations

from typing import SupportsInt

from memspan import _core
from memspan.types import Buffer as _Bytes
from shmem.core.utils import AclshmemInvalid, Buffer, BufferOrBytes, check

__all__ = ["get", "put", "put_signal", "quiet", "signal_op", "signal_wait"]

_c = _core.shmem


def _length(dst: BufferOrBytes, src: BufferOrBytes) -> int:
    lengths = [len(memoryview(b).cast("B")) if not isinstance(b, Buffer) else len(b) for b in (dst, src)]
    if lengths[1] > lengths[0]:
        raise AclshmemInvalid(f"src has {lengths[1]} bytes, and dst only {lengths[0]}")
    return lengths[1]


def _place(memory: BufferOrBytes) -> int | _Bytes:
    return memory.addr if isinstance(memory, Buffer) else memory


def put(
    dst: BufferOrBytes, src: BufferOrBytes, remote_pe: int = -1, stream: SupportsInt | None = None
) -> None:
    """All bytes of ``src`` here to ``dst`` at ``remote_pe``. AclshmemInvalid when ``dst`` has
    fewer, ValueError for a process that does not exist."""
    size = _length(dst, src)
    check(_c.putmem_on_stream(_place(dst), _place(src), size, remote_pe, int(stream or 0)))


def get(
    dst: BufferOrBytes, src: BufferOrBytes, remote_pe: int = -1, stream: SupportsInt | None = None
) -> None:
    """All bytes of ``src`` at ``remote_pe`` to ``dst`` here. Raises as ``put``."""
    size = _length(dst, src)
    check(_c.getmem_on_stream(_place(dst), _place(src), size, remote_pe, int(stream or 0)))


def put_signal(
    dst: BufferOrBytes,
    src: BufferOrBytes,
    signal_var: BufferOrBytes,
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
    signal_var: BufferOrBytes,
    signal_val: int,
    signal_operation: int,
    remote_pe: int = -1,
    stream: SupportsInt | None = None,
) -> None:
    """The 32-bit word ``signal_var`` there is set to or grows by ``signal_val`` (``SignalOp``). ValueError
    for another operation."""
    check(
        _c.signal_op_on_stream(
            _place(signal_var), signal_val, int(signal_operation), remote_pe, int(stream or 0)
        )
    )


def signal_wait(
    signal_var: BufferOrBytes,
    signal_val: int,
    signal_operation: int,
    stream: SupportsInt | None = None,
) -> None:
    """Until the 32-bit word here compares with ``signal_val`` so (``ComparisonType``)."""
    check(
        _c.signal_wait_until_on_stream(
            _place(signal_var), int(signal_operation), signal_val, int(stream or 0)
        )
    )


def quiet(stream: SupportsInt | None = None) -> None:
    """Waits until all puts of this process are complete."""
    check(_c.quiet_on_stream(int(stream or 0)))
