# SPDX-License-Identifier: Apache-2.0
"""Streams of the host device, and calls that a stream carries out in its order.

A stream is an int; 0 (the default) is the calling thread itself: the call is done on return.
"""

from memspan import _core

_c = _core.shmem


class Stream:
    """Work in order, on a thread of its own. ``int(stream)`` is what the calls below take."""

    def __init__(self):
        self._handle = _core.smem.stream_create()
        if self._handle == 0:
            raise RuntimeError(_core.smem.get_last_err_msg())

    def __int__(self):
        return self._handle

    __index__ = __int__

    def is_idle(self):
        """All its work is done."""
        return _core.smem.stream_query(self._handle) == 0

    def synchronize(self, timeout_ms=2**32 - 1):
        """Waits for all its work. Returns 0, or the code of the first failure since the last time."""
        return _core.smem.stream_synchronize(self._handle, timeout_ms)

    def close(self):
        """Waits for its work and ends it."""
        handle, self._handle = self._handle, 0
        if handle:
            _core.smem.stream_destroy(handle)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    __del__ = close


def shmem_putmem_on_stream(dst, src, elem_size, pe, stream=0):
    """``shmem_putmem``; ``src`` stays as it is until the stream is through. Returns 0 or a code."""
    return _c.putmem_on_stream(dst, src, elem_size, pe, int(stream))


def shmem_getmem_on_stream(dst, src, elem_size, pe, stream=0):
    """``shmem_getmem``."""
    return _c.getmem_on_stream(dst, src, elem_size, pe, int(stream))


def shmem_signal_op_on_stream(sig_addr, signal, sig_op, pe, stream=0):
    """``shmem_signal_op``."""
    return _c.signal_op_on_stream(sig_addr, signal, sig_op, pe, int(stream))


def shmem_signal_wait_until_on_stream(sig_addr, cmp, cmp_val, stream=0):
    """What the stream does later waits until the 32-bit word here compares so."""
    return _c.signal_wait_until_on_stream(sig_addr, cmp, cmp_val, int(stream))


def shmem_quiet_on_stream(stream=0):
    """``shmem_quiet``."""
    return _c.quiet_on_stream(int(stream))
