# SPDX-License-Identifier: Apache-2.0
"""Streams of the host device, and calls that a stream carries out in its order.

A stream is an int; 0 (the default) is the calling thread itself: the call is done on return.
"""

from typing import SupportsInt

from memspan import _core
from memspan.owner import Owner
from memspan.types import Memory

_c = _core.shmem


class Stream(Owner):
    """Work in order, on a thread of its own. ``int(stream)`` is what the calls below take. RuntimeError
    when there can be no more of them."""

    def __init__(self) -> None:
        self._handle = _core.smem.stream_create()
        if self._handle == 0:
            raise RuntimeError(_core.smem.get_last_err_msg())

    def __int__(self) -> int:
        return self._handle

    __index__ = __int__

    def is_idle(self) -> bool:
        """All its work is done."""
        return _core.smem.stream_query(self._handle) == 0

    def synchronize(self, timeout_ms: int = 2**32 - 1) -> int:
        """Waits for all its work, at most so many milliseconds. Returns 0, or the code of the first
        failure since the last time, or of the time-out."""
        return _core.smem.stream_synchronize(self._handle, timeout_ms)

    def destroy(self) -> None:
        """Waits for its work and ends it."""
        self._end(_core.smem.stream_destroy)

    close = destroy


def shmem_putmem_on_stream(
    dst: Memory, src: Memory, elem_size: int, pe: int, stream: SupportsInt = 0
) -> int:
    """``shmem_putmem``, ``elem_size`` bytes, in the order of ``stream``; ``src`` stays as it is until the stream
    is through. Returns 0 or a code; ValueError for objects instead of addresses but in stream 0."""
    return _c.putmem_on_stream(dst, src, elem_size, pe, int(stream))


def shmem_getmem_on_stream(
    dst: Memory, src: Memory, elem_size: int, pe: int, stream: SupportsInt = 0
) -> int:
    """``shmem_getmem``, ``elem_size`` bytes, in the order of ``stream``. Returns 0 or a code;
    ValueError for objects instead of addresses but in stream 0."""
    return _c.getmem_on_stream(dst, src, elem_size, pe, int(stream))


def shmem_signal_op_on_stream(
    sig_addr: Memory, signal: int, sig_op: int, pe: int, stream: SupportsInt = 0
) -> int:
    """``shmem_signal_op`` in the order of ``stream``: the 32-bit word at ``pe`` is set to ``signal``
    (``SignalOp`` 0) or grows by it (1). Returns 0 or a code."""
    return _c.signal_op_on_stream(sig_addr, signal, sig_op, pe, int(stream))


def shmem_signal_wait_until_on_stream(
    sig_addr: Memory, cmp: int, cmp_val: int, stream: SupportsInt = 0
) -> int:
    """Later work of the stream waits until this process's 32-bit word compares so (``CmpOp``) with
    ``cmp_val``. Returns 0 or a code."""
    return _c.signal_wait_until_on_stream(sig_addr, cmp, cmp_val, int(stream))


def shmem_quiet_on_stream(stream: SupportsInt = 0) -> int:
    """``shmem_quiet`` in the order of ``stream``. Returns 0 or a code."""
    return _c.quiet_on_stream(int(stream))
