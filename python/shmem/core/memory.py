# SPDX-License-Identifier: Apache-2.0
"""Buffers of the symmetric heap."""

from memspan import _core
from shmem.core.utils import AclshmemError, AclshmemInvalid, Buffer

__all__ = ["buffer", "free", "get_peer_buffer"]

_c = _core.shmem


def buffer(size: int, release: bool = False, except_on_del: bool = True) -> Buffer:
    """``size`` bytes of the symmetric heap; all processes must call it, and also ``free``.
    AclshmemError when memory is short."""
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
    """``pe``'s copy, which can be used directly; AclshmemError when it is on another host."""
    address = _c.ptr(buf.addr, pe)
    if address is None:
        raise AclshmemError(
            f"process {pe} is on another host than process {_c.my_pe()}: its copy is not mapped here, "
            f"put and get reach it"
        )
    return Buffer(address, buf.length, owner=buf)
