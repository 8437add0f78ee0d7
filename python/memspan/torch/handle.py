# SPDX-License-Identifier: Apache-2.0
"""The result of ``rendezvous``: a symmetric tensor at all ranks, and pads of signals between
them."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from memspan import _core
from memspan.torch.heap import heap
from memspan.torch.signals import signals_of

_WORD = 4


class Pads:
    """Pads of so many bytes for tensors; the size is fixed by the first use."""

    size = 2048
    is_used = False


class SymmetricMemory:
    """A symmetric tensor at all ranks. The word of (channel, sender) in a rank's pad is 1 from ``put_signal`` until the
    rank's ``wait_signal``; both wait where they have to, at most ``timeout_ms`` (0: 300 s; a
    wait for a signal notices a death before). For a tensor of a GPU they are work of ``stream``, by
    default PyTorch's current one, and it is the stream that waits, for as long as it takes."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._heap = heap()
        self._tensor = tensor
        Pads.is_used = True
        self._pad = self._heap.empty((Pads.size // _WORD,), torch.int32, tensor.device)
        self._signals = signals_of(self._heap, self._pad)

    @property
    def rank(self) -> int:
        """This process's."""
        return self._heap.rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self._heap.world

    @property
    def buffer_size(self) -> int:
        """Bytes of the tensor."""
        return self._tensor.numel() * self._tensor.element_size()

    @property
    def signal_pad_size(self) -> int:
        """Bytes of a pad."""
        return Pads.size

    @property
    def offset(self) -> int:
        """The tensor's offset in its allocation, in bytes."""
        start = self._tensor.data_ptr()
        return start - _core.allocation_of(start)

    @property
    def buffer_ptrs(self) -> list[int]:
        """The address of each rank's copy, for this process."""
        return [self._heap.peer(self._tensor, rank).data_ptr() for rank in range(self.world_size)]

    @property
    def signal_pad_ptrs(self) -> list[int]:
        """The address of each rank's pad, for this process."""
        return [self._heap.peer(self._pad, rank).data_ptr() for rank in range(self.world_size)]

    def _of_rank(
        self,
        tensor: torch.Tensor,
        rank: int,
        sizes: Sequence[int],
        dtype: torch.dtype,
        storage_offset: int,
    ) -> torch.Tensor:
        self._check_rank(rank)
        if not tensor.is_contiguous():
            raise ValueError("the tensor is not contiguous, so that it has no elements by number")
        begin = storage_offset * dtype.itemsize
        end = begin + math.prod(sizes) * dtype.itemsize
        if storage_offset < 0 or end > tensor.nbytes:
            raise ValueError(
                f"sizes {tuple(sizes)} of {dtype} from element {storage_offset} end at byte {end}, and "
                f"there are {tensor.nbytes}"
            )
        return self._heap.part(tensor, rank, begin, tuple(sizes), dtype)

    def get_buffer(
        self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int = 0
    ) -> torch.Tensor:
        """A rank's copy as a tensor of those sizes, which shares its memory; the offset is in elements of
        ``dtype``. ValueError for another rank, and for more than there is."""
        return self._of_rank(self._tensor, rank, sizes, dtype, storage_offset)

    def get_remote_tensor(
        self, peer: int, sizes: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """``get_buffer`` from the beginning."""
        return self.get_buffer(peer, sizes, dtype)

    def get_signal_pad(
        self,
        rank: int,
        sizes: Sequence[int] = (),
        dtype: torch.dtype = torch.uint32,
        storage_offset: int = 0,
    ) -> torch.Tensor:
        """A rank's pad, all of it when no sizes are said; the offset is in elements. Raises as
        ``get_buffer``."""
        if not sizes:
            sizes = (Pads.size // dtype.itemsize - storage_offset,)
        return self._of_rank(self._pad, rank, sizes, dtype, storage_offset)

    def _check_rank(self, rank: int) -> None:
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank is {rank}, allowed are 0 to {self.world_size - 1}")

    def put_signal(
        self, dst_rank: int, channel: int = 0, timeout_ms: int = 0, stream: Any = None
    ) -> None:
        """Sets the word at ``dst_rank``, once what was set before has been waited for. This
        process's earlier writes are complete when the signal is seen. ``memspan.Timeout`` (a
        TimeoutError) when the rank did not wait in time, ValueError for a rank or channel that does
        not exist."""
        self._check_rank(dst_rank)
        self._signals.put(dst_rank, channel, timeout_ms, stream)

    def wait_signal(
        self, src_rank: int, channel: int = 0, timeout_ms: int = 0, stream: Any = None
    ) -> None:
        """Waits for the signal of ``src_rank``, and clears it. Raises as ``put_signal``, and
        ``memspan.PeerFailed`` when a rank died."""
        self._check_rank(src_rank)
        self._signals.take(src_rank, channel, timeout_ms, stream)

    def barrier(self, channel: int = 0, timeout_ms: int = 0, stream: Any = None) -> None:
        """Every rank signals and waits for every other one. Collective. Raises as ``wait_signal``."""
        for step in range(1, self.world_size):
            self.put_signal((self.rank + step) % self.world_size, channel, timeout_ms, stream)
        for step in range(1, self.world_size):
            self.wait_signal((self.rank - step) % self.world_size, channel, timeout_ms, stream)
