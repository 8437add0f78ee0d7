# SPDX-License-Identifier: Apache-2.0
"""The symmetric heap: addresses, and arrays on it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from memspan import _core
from memspan.types import Memory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

_c = _core.shmem

Address = _core.Address


def shmem_malloc(size: int) -> Address | None:
    """``size`` bytes at the same place in every process; all must call it, with the same size.

    Returns an ``Address``, an int that is also a writable buffer of these bytes; None on all when
    memory is short, and for size 0.
    """
    return _c.malloc(size)


def shmem_calloc(nmemb: int, size: int) -> Address | None:
    """``nmemb * size`` bytes of zeros; else as ``shmem_malloc``."""
    return _c.calloc(nmemb, size)


def shmem_align(alignment: int, size: int) -> Address | None:
    """``size`` bytes at a multiple of ``alignment``, a power of two; else as ``shmem_malloc``."""
    return _c.align(alignment, size)


def shmem_free(ptr: Memory | None) -> None:
    """Gives back what one of the three above gave; all must call it. Nothing for None. ValueError for
    what none of them gave, or what was given back before."""
    _c.free(ptr)


def shmem_ptr(ptr: Memory, peer: int) -> Address | None:
    """The address at which process ``peer``'s copy of ``ptr`` can be read and written directly;
    None when it cannot."""
    return _c.ptr(ptr, peer)


# ---- what Address has beside its number and its buffer


def _dlpack(
    self: Address,
    *,
    stream: None = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> object:
    del max_version  # what is given is of the first version, which everybody reads
    if stream is not None or dl_device not in (None, _dlpack_device(self)):
        raise BufferError("the symmetric heap is host memory, which has no streams")
    if copy:
        raise BufferError("copying needs an explicit call: numpy.array(address) copies")
    return _core.to_dlpack(self)


def _dlpack_device(self: Address) -> tuple[int, int]:
    return (1, 0)  # the host's memory


class _OfArray(Address):
    """Keeps an array's memory for numpy, which keeps no buffer."""

    def __new__(cls, address: int, dtype: object, shape: object) -> "_OfArray":
        self = super().__new__(cls, address)
        self._held = _core.hold(address, (dtype, shape))
        return self


def views_in_use() -> list[str]:
    """The arrays and memoryviews of the heap that there are now, each in some words."""
    return [_in_words(*view) for view in _core.views()]


def _in_words(address: int, size: int, what: Any) -> str:
    if what is None:
        return f"a buffer of {size} bytes at {address:#x}"
    dtype, shape = what
    return f"a {dtype} array of shape {shape} at {address:#x}"


def as_array(
    address: int, dtype: "DTypeLike" = "uint8", shape: int | tuple[int, ...] | None = None
) -> "NDArray[Any]":
    """The memory at an ``Address`` as a numpy array of ``dtype`` and ``shape`` (an int or a tuple, in
    elements; None: all to the end of the allocation, one-dimensional). Shares its memory. TypeError
    or BufferError when that is more than the buffer has, or nothing."""
    import numpy

    dtype = numpy.dtype(dtype)
    bytes_there = _core.bytes_from(int(address))
    if shape is None:
        shape = (bytes_there // dtype.itemsize,)
    memory: Any = _OfArray(address, dtype, shape)
    return numpy.ndarray(shape, dtype, buffer=memory)


def tensor(
    shape: int | tuple[int, ...], dtype: "DTypeLike" = "float32", pe: int | None = None
) -> "NDArray[Any]":
    """A numpy array of zeros on the symmetric heap; all processes must ask for the same.

    shape: an int or a tuple, in elements. dtype: whatever numpy.dtype takes. pe: that process's
    copy instead of this one's, which must be on the same host. Give it back by ``free(array)``.
    Raises MemoryError when memory is short, ValueError for extents below 0.
    """
    import numpy

    dtype = numpy.dtype(dtype)
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"shape is {shape}, extents are 0 and more")
    wanted = max(math.prod(shape) * dtype.itemsize, 1)
    address = _c.calloc(1, wanted)
    if address is None:
        raise MemoryError(f"{wanted} bytes of symmetric heap: {_core.last_error()}")
    local = as_array(address, dtype, shape)
    return local if pe is None else peer_array(local, pe)


def peer_array(array: "NDArray[Any]", pe: int) -> "NDArray[Any]":
    """``pe``'s copy of an array on the heap, of the same shape and dtype; shares its memory. ValueError
    when it is on another host."""
    import numpy

    place = array.__array_interface__["data"][0]
    there = _c.ptr(place, pe)
    if there is None:
        raise ValueError(
            f"process {pe} is on another host than process {_c.my_pe()}: its copy of the array is not "
            f"mapped here, put and get reach it"
        )
    memory: Any = _OfArray(there, array.dtype, array.shape)
    return numpy.ndarray(array.shape, array.dtype, buffer=memory, strides=array.strides)


def free(array: "NDArray[Any]") -> None:
    """Gives back an array that ``tensor`` made, this process's or a peer's; all must call it. ValueError
    for any other."""
    place = array.__array_interface__["data"][0]
    _c.free(_core.allocation_of(place))


for _name, _method in [
    ("__dlpack__", _dlpack),
    ("__dlpack_device__", _dlpack_device),
    ("numpy", as_array),
]:
    setattr(Address, _name, _method)
