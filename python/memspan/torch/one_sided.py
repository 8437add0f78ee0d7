# SPDX-License-Identifier: Apache-2.0
"""Puts, gets and signals between symmetric tensors. Arguments are checked before anything moves.

With a tensor of a GPU an operation is work of a stream; else, and if the local end is memory of the
CPU, it is complete on return.
"""

from typing import Any, Union

import torch
from memspan import _core
from memspan.torch import cuda
from memspan.torch.heap import heap

_c, _typed, _device = _core.shmem, _core.typed, _core.device

SET, ADD = 0, 1
# What the interface calls 0, 1 and 2: equal, greater, less.
_COMPARISONS = {0: 0, 1: 2, 2: 4}
_EQUAL, _GREATER, _AT_LEAST = 0, 2, 3
_LARGEST = 2**31 - 1
Number = Union[int, torch.Tensor]  # of one element


def _number(value: Number, name: str) -> int:
    """An int, or the one element of a tensor."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise ValueError(f"{name} has {value.numel()} elements, allowed is 1")
        return int(value.item())
    return int(value)


def _check_rank(rank: int) -> None:
    if not 0 <= rank < heap().world:
        raise ValueError(f"target_rank is {rank}, allowed are 0 to {heap().world - 1}")


def check_symmetric(tensor: torch.Tensor, name: str) -> None:
    """ValueError for a tensor of other memory."""
    if not heap().is_symmetric(tensor):
        raise ValueError(f"{name} is not a symmetric tensor; empty() makes them")


def _place(tensor: torch.Tensor, offset: int, size: int, name: str) -> int:
    """The address of elements [offset, offset + size) of a contiguous tensor."""
    if not tensor.is_contiguous():
        raise ValueError(f"{name} is not contiguous")
    if offset < 0 or size < 0 or offset + size > tensor.numel():
        raise ValueError(
            f"{name} has {tensor.numel()} elements, and [{offset}, {offset + size}) are asked for"
        )
    return tensor.data_ptr() + offset * tensor.element_size()


def _word(signal: torch.Tensor, offset: Number) -> int:
    if signal.dtype != torch.int32:
        raise ValueError(f"signal is of {signal.dtype}, allowed is torch.int32")
    check_symmetric(signal, "signal")
    return _place(signal, _number(offset, "signal_offset"), 1, "signal")


class Move:
    """The elements of both ends of a put or get."""

    def __init__(
        self,
        target: torch.Tensor,
        target_offset: Number,
        src: torch.Tensor,
        src_offset: Number,
        size: Number,
        rank: int,
    ) -> None:
        _check_rank(rank)
        if target.dtype != src.dtype:
            raise ValueError(f"target is of {target.dtype}, and src of {src.dtype}")
        count = _number(size, "size")
        self.target = _place(target, _number(target_offset, "target_offset"), count, "target")
        self.source = _place(src, _number(src_offset, "src_offset"), count, "src")
        self.bytes = count * target.element_size()
        self.rank = rank

    def put(self, stream: "cuda.Stream | None") -> None:
        """``source`` here to ``target`` at the rank."""
        if self.bytes == 0:
            return
        if stream is not None:
            _device.putmem_on_stream(self.target, self.source, self.bytes, self.rank, stream.handle)
        else:
            _c.shmem_putmem(self.target, self.source, self.bytes, self.rank)
            _c.shmem_quiet()

    def get(self, stream: "cuda.Stream | None") -> None:
        """``source`` at the rank to ``target`` here."""
        if self.bytes == 0:
            return
        if stream is not None:
            _device.getmem_on_stream(self.target, self.source, self.bytes, self.rank, stream.handle)
        else:
            _c.shmem_getmem(self.target, self.source, self.bytes, self.rank)


class Change:
    """A word at a peer, and what becomes of it."""

    def __init__(
        self, signal: torch.Tensor, offset: Number, value: Number, operation: int, rank: int
    ) -> None:
        _check_rank(rank)
        if operation not in (SET, ADD):
            raise ValueError(f"signal_op is {operation}, allowed are 0 (set) and 1 (add)")
        if operation == ADD and signal.device.type == "cuda":
            raise ValueError(
                "signal_op is 1 (add) and signal is on a GPU, to whose memory only its kernels add: take 0 "
                "(set), or a symmetric tensor of the CPU as signal"
            )
        self.word = _word(signal, offset)
        self.value = _number(value, "signal_value")
        self.operation, self.rank = operation, rank

    def make(self, stream: "cuda.Stream | None") -> None:
        """The peer sees it after what was put before."""
        change = (self.word, self.value, self.operation, self.rank)
        if stream is not None:
            _device.signal_op_on_stream(*change, stream.handle)
        else:
            _c.shmem_signal_op(*change)


def finish(stream: "cuda.Stream | None", local: "torch.Tensor | None", *others: Any) -> None:
    """After an operation was given to the stream: what it uses is kept; it is waited for where the local
    end is the CPU's."""
    if stream is None:
        return
    stream.keep(local, *others)
    if local is not None and local.device.type == "cpu":
        stream.wait()


def wait_until(
    signal: torch.Tensor,
    offset: Number,
    value: Number,
    operation: int,
    stream: "cuda.Stream | None",
) -> None:
    """Until one word of ``signal`` here compares so."""
    if operation not in _COMPARISONS:
        raise ValueError(
            f"compare_op is {operation}, allowed are 0 (equal), 1 (greater) and 2 (less)"
        )
    word, compare = _word(signal, offset), _COMPARISONS[operation]
    number = _number(value, "compare_value")
    if signal.device.type == "cuda":
        compare, number = _of_stream(compare, number)
    if stream is not None:
        _device.signal_wait_until_on_stream(word, compare, number, stream.handle)
    else:
        _typed.shmem_int32_wait_until(word, compare, number)


def _of_stream(compare: int, value: int) -> tuple[int, int]:
    """The same by what a stream compares memory of a GPU by: equal, and at least."""
    if compare == _EQUAL:
        return compare, value
    if compare == _GREATER and value < _LARGEST:
        return _AT_LEAST, value + 1
    raise ValueError(
        f"compare_op is {'1 (greater), and compare_value the largest there is' if compare == _GREATER else '2 (less)'}"
        f", and signal is on a GPU: allowed are 0 (equal) and 1 (greater), or a symmetric tensor of the CPU as signal"
    )
