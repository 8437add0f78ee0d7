# SPDX-License-Identifier: Apache-2.0
"""The types in annotations of memspan's packages."""

from collections.abc import Sequence
from typing import Any, Protocol, Union

__all__ = ["Array", "Buffer", "Memory", "Numbers"]


class Buffer(Protocol):
    """An object with the buffer protocol: bytes, bytearray, memoryview, an ``Address`` of the symmetric
    heap."""

    def __buffer__(self, flags: int, /) -> memoryview:
        """The memory."""
        ...


class Array(Protocol):
    """An array of numpy, or one of its numbers. They also have the buffer protocol, which type
    checkers know only from Python 3.12 on."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Its address and layout."""
        ...


Memory = Union[int, Buffer, Array]
"""An address, or an object, whose size is then checked."""

Numbers = Union[Sequence[int], Buffer, Array]
"""Addresses or sizes: a list of ints, or an array of 64-bit integers, which is used where it lies."""
