# SPDX-License-Identifier: Apache-2.0
"""The symmetric heap as PyTorch tensors: of the CPU, and of a GPU where MEMSPAN_DEVICE=cuda is set.

Every process asks for the same tensors in the same order (``empty`` is collective). One without
references is noted here and freed by a later ``empty`` once every process has dropped it, so that
the order in which garbage is collected can neither deadlock nor misplace anything.
"""

import math
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from memspan import _core
from memspan.errors import Error
from memspan.remedy import remedy
from memspan.torch import cuda

_c, _typed = _core.shmem, _core.typed

_USUAL_HEAP = 1 << 30
_USUAL_STORE = "tcp://127.0.0.1:8662"
_WORD_BITS = 63  # of an int64, without its sign
_WORDS = 64  # so many times that tensors may be alive at a time
_TIMEOUT_S = 300
_INITIALIZED = 2
CPU = torch.device("cpu")


class OutOfHeap(ValueError):
    """The heap has no room for a tensor."""


class _Memory(_core.Address):
    """Keeps a tensor's memory; its end is noted."""

    _note_end: "Callable[[], None]"

    def __new__(cls, address: int, note_end: "Callable[[], None]") -> "_Memory":
        made = super().__new__(cls, address)
        made._note_end = note_end
        return made

    def __del__(self) -> None:
        self._note_end()


class _PeerMemory(_core.Address):
    """Keeps the local tensor alive for a tensor of a peer's copy."""

    _tensor: torch.Tensor

    def __new__(cls, address: int, tensor: torch.Tensor) -> "_PeerMemory":
        made = super().__new__(cls, address)
        made._tensor = tensor
        return made


def _count_and_rank() -> tuple[int, int]:
    import torch.distributed as dist

    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))


def heap_bytes() -> int:
    """The value of SYMMETRIC_MEMORY_HEAP_SIZE, 1 GiB by default. ValueError for no number."""
    text = os.environ.get("SYMMETRIC_MEMORY_HEAP_SIZE")
    if text is None:
        return _USUAL_HEAP
    if not text.isdigit() or int(text) == 0:
        raise ValueError(
            f'SYMMETRIC_MEMORY_HEAP_SIZE is "{text}", allowed is a number of bytes, 1 and more'
        )
    return int(text)


_OTHER_RANK = remedy(
    "torch-rank-differs",
    "memspan was started with another rank or size than torch.distributed.",
    "Start memspan and torch.distributed by the same launcher, and unset RANK and WORLD_SIZE of an outer job.")
_HEAP_FULL = remedy(
    "torch-heap-full",
    "The symmetric heap for tensors is full.",
    "Set a larger SYMMETRIC_MEMORY_HEAP_SIZE before the first symmetric tensor, or drop tensors that are no longer used.")
_NOT_MAPPED = remedy(
    "tensor-on-other-host",
    "Only ranks on one host can map each other's symmetric tensors.",
    "Use put and get, which work between hosts, or keep the ranks of the group on one host.")


class Heap:
    """This process's part of the job; ``heap()`` starts it. ``memspan.Error`` when it cannot start."""

    def __init__(self) -> None:
        self.rank, self.world = _count_and_rank()
        self.bytes = heap_bytes()
        if _c.init_status() != _INITIALIZED:
            store = os.environ.get("SHMEM_IP_PORT", _USUAL_STORE)
            seconds = (_TIMEOUT_S,) * 3
            if _c.init(self.rank, self.world, self.bytes, store, 1, seconds) != 0:
                raise Error(f"starting symmetric memory: {_core.last_error()}")
        elif (_c.my_pe(), _c.n_pes()) != (self.rank, self.world):
            raise Error(
                f"this process is PE {_c.my_pe()} of {_c.n_pes()}, but rank {self.rank} of "
                f"{self.world} of torch.distributed{_OTHER_RANK}"
            )
        self._slots: dict[int, int] = {}  # by number: the address of an allocation
        self._dropped: set[int] = set()  # numbers whose tensors are gone here
        self._of_gpu: set[int] = set()  # numbers of tensors in memory of the GPU
        self._ordinal: "int | None" = None  # of the GPU, once it is used
        self._words = self._scratch(_WORDS, torch.int64)
        self._words_of_all = self._scratch(_WORDS, torch.int64)

    def _scratch(self, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Memory of the heap that stays until its end."""
        address = _c.calloc(count, dtype.itemsize)
        if address is None:
            raise OutOfHeap(f"the symmetric heap of {self.bytes} bytes is too small to begin with{_HEAP_FULL}")
        return self.view(address, (count,), dtype)

    @staticmethod
    def view(address: int, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """A tensor of the memory there, of the host."""
        count = math.prod(shape)
        if count == 0:
            return torch.empty(shape, dtype=dtype)
        return torch.frombuffer(address, dtype=dtype, count=count).view(shape)

    def collect(self) -> None:
        """Gives back what every process has dropped. Collective."""
        cuda.drop_finished()
        if self._ordinal is not None and not self._dropped.isdisjoint(self._of_gpu):
            cuda.wait_for_current(self._ordinal)  # kernels of PyTorch may still use them
        self._words.zero_()
        for number in tuple(self._dropped):  # garbage may be collected meanwhile
            self._words[number // _WORD_BITS] |= 1 << (number % _WORD_BITS)
        _typed.shmem_int64_and_reduce(self._words_of_all.data_ptr(), self._words.data_ptr(), _WORDS)
        for index, word in enumerate(self._words_of_all.tolist()):
            while word:
                bit = (word & -word).bit_length() - 1
                word &= word - 1
                number = index * _WORD_BITS + bit
                self._dropped.discard(number)
                self._of_gpu.discard(number)
                _c.free(self._slots.pop(number))

    def empty(
        self, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device = CPU
    ) -> torch.Tensor:
        """A symmetric tensor. Collective. OutOfHeap, which is a ValueError, on all ranks when
        memory is short."""
        wanted = math.prod(shape) * dtype.itemsize
        self.collect()
        if len(self._slots) == _WORDS * _WORD_BITS:
            raise OutOfHeap(f"there are {len(self._slots)} symmetric tensors, which is the most")
        address = self._allocate(max(wanted, 1), device)
        number = next(n for n in range(_WORDS * _WORD_BITS) if n not in self._slots)
        self._slots[number] = int(address)
        dropped = self._dropped
        memory = _Memory(address, lambda: dropped.add(number))
        if device.type == "cuda":
            self._of_gpu.add(number)
            return self._on_gpu(memory, shape, dtype, device)
        made = torch.frombuffer(memory, dtype=torch.uint8, count=max(wanted, 1))
        return made[:wanted].view(dtype).view(shape)

    def _allocate(self, bytes_: int, device: torch.device) -> _core.Address:
        """Zeros; OutOfHeap on all."""
        calloc = _c.calloc if device.type == "cpu" else _core.device.calloc
        address = calloc(1, bytes_)
        if address is None and self._ordinal is not None:
            cuda.wait_for_all(self._ordinal)  # which keeps what was dropped already
            self.collect()
            address = calloc(1, bytes_)
        if address is not None:
            return address
        if device.type == "cuda":
            raise OutOfHeap(f"a tensor of {bytes_} bytes on {device}: {_core.last_error()}")
        raise OutOfHeap(
            f"a tensor of {bytes_} bytes does not fit into what is left of the symmetric heap "
            f"of {self.bytes} bytes{_HEAP_FULL}"
        )

    def _on_gpu(
        self, memory: _Memory, shape: tuple[int, ...], dtype: torch.dtype, device: torch.device
    ) -> torch.Tensor:
        self._ordinal = cuda.ordinal_of(memory)
        if device.index not in (None, self._ordinal):
            raise ValueError(
                f'device is "{device}", and this process\'s symmetric memory is on cuda:{self._ordinal}: '
                f"MEMSPAN_DEVICE=cuda:{device.index} chooses, before the job starts"
            )
        return cuda.tensor_at(memory, shape, _strides_of(shape), dtype, self._ordinal)

    def is_symmetric(self, tensor: torch.Tensor) -> bool:
        """Whether all its bytes are in one allocation of the heap."""
        if tensor.device.type not in ("cpu", "cuda"):
            return False
        if tensor.numel() == 0:
            return True
        return _core.bytes_from(tensor.data_ptr()) >= span_bytes(tensor)

    def is_alive(self) -> bool:
        """Whether the job that it belongs to has not ended."""
        return _core.bytes_from(self._words.data_ptr()) > 0

    def _mapped(self, tensor: torch.Tensor, rank: int) -> "torch.Tensor | None":
        """``rank``'s copy of a symmetric tensor, which shares its memory. None on another host."""
        if rank == self.rank or tensor.numel() == 0:
            return tensor
        there = _c.ptr(tensor.data_ptr(), rank)
        if there is None:
            return None
        memory = _PeerMemory(there, tensor)
        return _tensor_at(memory, tensor.shape, tensor.stride(), tensor.dtype, tensor.device)

    def peer(self, tensor: torch.Tensor, rank: int) -> torch.Tensor:
        """``rank``'s copy of a symmetric tensor, which shares its memory. ValueError when it is on
        another host."""
        there = self._mapped(tensor, rank)
        if there is None:
            raise ValueError(
                f"rank {rank} is on another host than rank {self.rank}: its copy of the tensor is not "
                f"mapped here, put and get reach it{_NOT_MAPPED}"
            )
        return there

    def part(
        self, tensor: torch.Tensor, rank: int, begin: int, shape: tuple[int, ...], dtype: torch.dtype
    ) -> torch.Tensor:
        """A contiguous tensor of ``rank``'s copy of a contiguous symmetric one, from byte ``begin`` on. Raises as
        ``peer``."""
        if math.prod(shape) == 0:
            return torch.empty(shape, dtype=dtype, device=tensor.device)
        there = self.peer(tensor, rank)
        memory = _PeerMemory(there.data_ptr() + begin, there)
        return _tensor_at(memory, shape, _strides_of(shape), dtype, tensor.device)

    def read(self, tensor: torch.Tensor, rank: int) -> torch.Tensor:
        """``rank``'s copy of a contiguous symmetric tensor to read: its memory, or what a get brings."""
        there = self._mapped(tensor, rank)
        if there is None:
            there = torch.empty_like(tensor)
            _c.shmem_getmem(there.data_ptr(), tensor.data_ptr(), tensor.nbytes, rank)
        return there

    def write(self, tensor: torch.Tensor, rank: int, values: torch.Tensor) -> None:
        """Copies contiguous values to ``rank``'s copy of a contiguous symmetric tensor."""
        there = self._mapped(tensor, rank)
        if there is None:
            _c.shmem_putmem(tensor.data_ptr(), values.data_ptr(), tensor.nbytes, rank)
        else:
            there.copy_(values)

    def barrier(self) -> None:
        """Waits until all ranks have arrived and all puts are complete."""
        if self._ordinal is not None:
            cuda.wait_for_all(self._ordinal)
        _c.shmem_barrier_all()

    def barrier_on_stream(self, stream: Any) -> None:
        """The same in the order of a stream of the GPU, without a wait here. ValueError before the first
        symmetric tensor of a GPU."""
        if self._ordinal is None:
            raise ValueError("stream is given, and there is no symmetric tensor of a GPU yet")
        on = cuda.stream_at(stream, self._ordinal)
        _core.device.barrier_all_on_stream(on.handle)
        on.keep()


def span_bytes(tensor: torch.Tensor) -> int:
    """From its first byte to its last; 0 for no elements."""
    if tensor.numel() == 0:
        return 0
    last = sum((extent - 1) * step for extent, step in zip(tensor.shape, tensor.stride()))
    return (last + 1) * tensor.element_size()


def _strides_of(shape: Sequence[int]) -> list[int]:
    """Size of a contiguous tensor, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


def _tensor_at(
    memory: _core.Address,
    shape: Sequence[int],
    strides: Sequence[int],
    dtype: torch.dtype,
    device: torch.device,
) -> torch.Tensor:
    """Memory, of which there is some, as a tensor that keeps it."""
    if device.type == "cuda":
        return cuda.tensor_at(memory, shape, strides, dtype, device.index)
    last = sum((extent - 1) * step for extent, step in zip(shape, strides))
    flat = torch.frombuffer(memory, dtype=torch.uint8, count=(last + 1) * dtype.itemsize)
    return flat.view(dtype).as_strided(shape, strides)


_heap = None


def heap() -> Heap:
    """The process's heap, which the first call starts. Collective then."""
    global _heap
    if _heap is None or not _heap.is_alive():
        _heap = Heap()
    return _heap


def is_started() -> bool:
    """Whether there is a job that ``heap()`` started and that has not ended."""
    return _heap is not None and _heap.is_alive()
