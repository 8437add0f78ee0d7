# SPDX-License-Identifier: Apache-2.0
"""What annotations of memspan's packages name."""

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
    """An array of numpy, or one of its numbers. They have the buffer protocol, too, but type checkers
    know of that from Python 3.12 on only."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where it lies, and how."""
        ...


Memory = Union[int, Buffer, Array]
"""An address, or an object, whose size is then checked."""

Numbers = Union[Sequence[int], Buffer, Array]
"""Addresses or sizes: a list of ints, or an array of 64-bit integers, which is used where it lies."""
