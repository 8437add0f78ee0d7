# SPDX-License-Identifier: Apache-2.0
"""Signals between two ranks at a time, by words of symmetric pads: each is given once the one before was
taken.

A word is 1 from the sender's ``put`` until the receiver's ``take``. On the CPU the sender looks at the receiver's
word until it is free. A stream can only wait for local words, so the receiver signals that the word
is free:

    sender                          receiver
    sent[receiver] == 0 ?
    sent[receiver] = 1
    pad[sender] = 1   ---------->   pad[sender] == 1 ?
                                    pad[sender] = 0
    sent[receiver] = 0 <----------
"""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from memspan import _core
from memspan.errors import Timeout
from memspan.torch import cuda, one_sided
from memspan.torch.heap import Heap

_c, _typed, _device = _core.shmem, _core.typed, _core.device

_FREE, _SET = 0, 1
_WORD = 4
_EQUAL = 0


class _Signals:
    """Words of a pad, which has one for each sender in each channel."""

    def __init__(self, heap: Heap, pad: torch.Tensor) -> None:
        self._rank, self._world, self._pad = heap.rank, heap.world, pad

    def _word(self, pad: torch.Tensor, channel: int, sender: int) -> int:
        channels = pad.numel() // self._world
        if not 0 <= channel < channels:
            raise ValueError(f"channel is {channel}, allowed are 0 to {channels - 1}")
        return pad.data_ptr() + (self._world * channel + sender) * _WORD


class HostSignals(_Signals):
    """Signals of a pad of the CPU."""

    def _swap_until(
        self, word: int, condition: int, value: int, rank: int, timeout_ms: int, what: str
    ) -> None:
        timeout_ms = timeout_ms or cuda.LONGEST_MS
        end = time.monotonic() + timeout_ms / 1000
        while _typed.shmem_int32_atomic_compare_swap(word, condition, value, rank) != condition:
            if time.monotonic() > end:
                raise Timeout(f"{what} within {timeout_ms} ms")
            os.sched_yield()

    def put(self, rank: int, channel: int, timeout_ms: int, stream: Any) -> None:
        """Sets this rank's word in the pad of ``rank``."""
        self._refuse(stream)
        word = self._word(self._pad, channel, self._rank)
        _c.shmem_quiet()
        what = f"rank {rank} did not wait for the signal before on channel {channel}"
        self._swap_until(word, _FREE, _SET, rank, timeout_ms, what)

    def take(self, rank: int, channel: int, timeout_ms: int, stream: Any) -> None:
        """Waits for the word of ``rank`` in the pad here, and frees it."""
        self._refuse(stream)
        word = self._word(self._pad, channel, rank)
        if timeout_ms == 0:
            _typed.shmem_int32_wait_until(word, _EQUAL, _SET)
        what = f"no signal of rank {rank} on channel {channel}"
        self._swap_until(word, _SET, _FREE, self._rank, timeout_ms, what)

    @staticmethod
    def _refuse(stream: Any) -> None:
        if stream is not None:
            raise ValueError("stream is given, and the tensor is of the CPU, whose signals are at once")


class StreamSignals(_Signals):
    """Signals of a pad of a GPU: work of a stream."""

    def __init__(self, heap: Heap, pad: torch.Tensor) -> None:
        super().__init__(heap, pad)
        self._sent = heap.empty(tuple(pad.shape), torch.int32, pad.device)

    def put(self, rank: int, channel: int, timeout_ms: int, stream: Any) -> None:
        """Sets this rank's word in the pad of ``rank``."""
        on = self._stream(timeout_ms, stream)
        sent = self._word(self._sent, channel, rank)
        there = self._word(self._pad, channel, self._rank)
        _device.quiet_on_stream(on.handle)
        _device.signal_wait_until_on_stream(sent, _EQUAL, _FREE, on.handle)
        self._set(sent, _SET, self._rank, on)
        self._set(there, _SET, rank, on)
        on.keep(self._pad, self._sent)

    def take(self, rank: int, channel: int, timeout_ms: int, stream: Any) -> None:
        """Waits for the word of ``rank`` in the pad here, and frees it."""
        on = self._stream(timeout_ms, stream)
        here = self._word(self._pad, channel, rank)
        sent_there = self._word(self._sent, channel, self._rank)
        _device.signal_wait_until_on_stream(here, _EQUAL, _SET, on.handle)
        self._set(here, _FREE, self._rank, on)
        self._set(sent_there, _FREE, rank, on)
        on.keep(self._pad, self._sent)

    @staticmethod
    def _set(word: int, value: int, rank: int, on: cuda.Stream) -> None:
        _device.signal_op_on_stream(word, value, one_sided.SET, rank, on.handle)

    def _stream(self, timeout_ms: int, stream: Any) -> cuda.Stream:
        if timeout_ms != 0:
            raise ValueError(
                f"timeout_ms is {timeout_ms}, allowed is 0 for memory of a GPU: it is the stream that waits"
            )
        return cuda.stream_at(stream, self._pad.device.index)


def signals_of(heap: Heap, pad: torch.Tensor) -> HostSignals | StreamSignals:
    """Collective for a pad of a GPU."""
    return HostSignals(heap, pad) if pad.device.type == "cpu" else StreamSignals(heap, pad)
