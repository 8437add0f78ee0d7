# SPDX-License-Identifier: Apache-2.0
"""PyTorch's tensors on the symmetric heap, as the later generation of the interface makes them. PyTorch
is imported when the first is made."""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any

from memspan import _core
from shmem.memory import Address

if TYPE_CHECKING:
    import torch

__all__ = [
    "aclshmem_create_tensor",
    "aclshmem_free_tensor",
    "calc_nbytes",
    "construct_tensor_from_ptr",
]

_c = _core.shmem


def calc_nbytes(shape: "int | tuple[int, ...]", dtype: "torch.dtype") -> int:
    """The bytes of a tensor of that shape (in elements) and type. ValueError for extents below 0."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"shape is {extents}, extents are 0 and more")
    return math.prod(extents) * dtype.itemsize


def construct_tensor_from_ptr(
    data_ptr: int,
    shape: "int | tuple[int, ...]",
    dtype: "torch.dtype",
    device: "str | torch.device | None" = "cpu",
    stride: tuple[int, ...] | None = None,
    storage_offset: int | None = None,
) -> "torch.Tensor":
    """The memory at an address as a tensor, which shares it; stride and offset are in elements. ValueError
    for another device than the CPU, strides below 0, and what is not memory of this process."""
    import torch

    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if device is not None and torch.device(device).type != "cpu":
        raise ValueError(f"device is {device}, allowed is cpu: the symmetric heap is host memory")
    offset = storage_offset or 0
    if offset < 0 or (stride is not None and any(step < 0 for step in stride)):
        raise ValueError(f"stride is {stride} and storage_offset {offset}, allowed are 0 and more")
    if calc_nbytes(extents, dtype) == 0:
        return torch.empty(extents, dtype=dtype)
    flat = torch.frombuffer(_bytes_at(data_ptr, _span(extents, stride, offset) * dtype.itemsize), dtype=dtype)
    if stride is None:
        return flat[offset:].view(extents)
    return flat.as_strided(extents, stride, offset)


def _span(extents: tuple[int, ...], stride: tuple[int, ...] | None, offset: int) -> int:
    """From the beginning to behind the last element."""
    if stride is None:
        return offset + math.prod(extents)
    if len(stride) != len(extents):
        raise ValueError(f"stride is {stride}, needed is one for each of {len(extents)} extents")
    return offset + 1 + sum((n - 1) * step for n, step in zip(extents, stride))


def _bytes_at(address: int, size: int) -> Any:
    if _core.bytes_from(int(address)) >= size:
        return memoryview(Address(address))[:size]
    for end in (address, address + size - 1):
        _c.load(end, 1)  # says what is not there
    return (ctypes.c_uint8 * size).from_address(address)


def aclshmem_create_tensor(
    shape: "int | tuple[int, ...]", dtype: "torch.dtype | None" = None, device_id: int = 0
) -> "torch.Tensor":
    """A tensor of zeros on the symmetric heap (float32 when no dtype is said); all processes must ask for
    the same. ``device_id`` means nothing here. MemoryError when memory is short."""
    import torch

    del device_id
    dtype = torch.float32 if dtype is None else dtype
    wanted = max(calc_nbytes(shape, dtype), 1)
    address = _c.calloc(1, wanted)
    if address is None:
        raise MemoryError(f"{wanted} bytes of symmetric heap: {_core.last_error()}")
    made = construct_tensor_from_ptr(address, shape, dtype)
    if made.numel() == 0:
        _c.free(address)
    return made


def aclshmem_free_tensor(tensor: "torch.Tensor") -> None:
    """Gives back a tensor that ``aclshmem_create_tensor`` made; all must call it. ValueError for any
    other."""
    if tensor.numel() != 0:
        _c.free(_core.allocation_of(tensor.data_ptr()))
