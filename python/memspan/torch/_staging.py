# SPDX-License-Identifier: Apache-2.0
"""The symmetric memory through which collectives and fused products move data of ordinary tensors:
a stage for pieces and counts, flags for the arrival of parts, and a workspace that grows. Whether
the arguments fit is agreed here; they are checked in ``handler``. All of it is collective."""

import zlib

import torch
from memspan import _core
from memspan.torch.heap import heap

_c, _typed = _core.shmem, _core.typed

_STAGE = 1 << 20  # bytes of the heap through which tensors of other memory go


class Stage:
    """Symmetric memory through which collectives move data of ordinary tensors; made once.

    A peer that is ahead may write the result of its next collective here while this process still
    reads the last one's. It cannot be two ahead, since each needs data of every rank: results
    alternate between two places."""

    made = None

    def __init__(self):
        self.heap = heap()
        world = heap().world
        self.block = max(_STAGE // world // 64 * 64, 64)
        self.window = heap().empty((_STAGE,), torch.uint8)
        self._turn = 0
        self._mine = heap().empty((self.block,), torch.uint8)
        self._all = heap().empty((2, self.block * world), torch.uint8)
        self._counts = heap().empty((world,), torch.int64)
        self._counts_of_all = heap().empty((2, world), torch.int64)

    @classmethod
    def get(cls):
        if cls.made is None or cls.made.heap is not heap():
            cls.made = cls()
        return cls.made

    def _next(self, results):
        self._turn ^= 1
        return results[self._turn]

    def _reduce(self, function, value):
        self._counts[0] = value
        result = self._next(self._counts_of_all)
        function(result.data_ptr(), self._counts.data_ptr(), 1)
        return int(result[0])

    def smallest(self, value):
        """The minimum over all ranks."""
        return self._reduce(_typed.shmem_int64_min_reduce, value)

    def largest(self, value):
        """The maximum over all ranks."""
        return self._reduce(_typed.shmem_int64_max_reduce, value)

    def exchange(self, counts):
        """``counts[r]`` to rank r; what every rank has for this one."""
        self._counts.copy_(torch.tensor(counts, dtype=torch.int64))
        result = self._next(self._counts_of_all)
        _c.shmem_alltoall(result.data_ptr(), self._counts.data_ptr(), 8)
        return result.tolist()

    def gather(self, piece):
        """The piece of every rank, at most ``block`` bytes, as many of all: (world, bytes)."""
        count = piece.numel()
        self._mine[:count].copy_(piece)
        result = self._next(self._all)
        _c.shmem_fcollect(result.data_ptr(), self._mine.data_ptr(), count)
        return result[: count * heap().world].view(heap().world, count)


class Flags:
    """One word for each rank, which the rank sets to the number of the call: never reset, so that
    no call can take another one's for its own."""

    made = None

    def __init__(self):
        self.heap = heap()
        self.words = heap().empty((heap().world * 16,), torch.int32)  # each on a cache line
        self.call = 0

    @classmethod
    def next(cls):
        if cls.made is None or cls.made.heap is not heap():
            cls.made = cls()
        cls.made.call = cls.made.call % (2**31 - 1) + 1
        return cls.made

    def _place(self, rank):
        return self.words.data_ptr() + rank * 64

    def raise_at(self, rank):
        """This process's earlier writes are complete when ``rank`` sees the signal."""
        _c.shmem_quiet()
        _typed.shmem_int32_atomic_set(self._place(heap().rank), self.call, rank)

    def wait_for(self, rank):
        _typed.shmem_int32_wait_until(self._place(rank), 0, self.call)


class Workspace:
    """Symmetric memory of the fused operations; grows, collectively, when it has to."""

    heap = None
    memory = None

    @classmethod
    def at_least(cls, bytes_):
        needed = max(bytes_, 1)
        if cls.heap is not heap() or cls.memory.numel() < needed:
            cls.heap, cls.memory = heap(), None
            cls.memory = heap().empty((needed,), torch.uint8)
        return cls.memory


def agree(is_right, what):
    """Raises on all ranks when one of them says that it is wrong."""
    if Stage.get().smallest(int(is_right)) == 0:
        raise ValueError(what if not is_right else "another rank's arguments do not fit")


def agree_alike(*values):
    """Raises on all ranks when they do not all say the same."""
    number = zlib.crc32(repr(values).encode())
    stage = Stage.get()
    if stage.smallest(number) != stage.largest(number):
        raise ValueError(f"the ranks' shapes or types differ; this one has {values}")


def bytes_of(tensor):
    return tensor.view(-1).view(torch.uint8) if tensor.numel() else torch.empty(0, dtype=torch.uint8)


def move_all(outgoing, target, incoming):
    """Bytes of ``outgoing[r]`` to rank r; ``incoming[r]`` bytes of rank r's to ``target``, by rank.

    Each rank in turn shows its data for all ranks through a window, and takes its own part."""
    job = heap()
    stage = Stage.get()
    sizes = [part.numel() for part in outgoing]
    # Where my part begins in what each rank shows.
    begins = [sum(sizes[:rank]) for rank in range(job.world)]
    my_begins = stage.exchange(begins)
    places = [sum(incoming[:rank]) for rank in range(job.world)]
    most = stage.largest(sum(sizes))
    shown = torch.cat(outgoing) if outgoing else torch.empty(0, dtype=torch.uint8)
    for begin in range(0, most, _STAGE):
        piece = shown[begin : begin + _STAGE]
        stage.window[: piece.numel()].copy_(piece)
        job.barrier()
        for step in range(job.world):
            rank = (job.rank + step) % job.world
            first = max(my_begins[rank], begin)
            last = min(my_begins[rank] + incoming[rank], begin + _STAGE)
            if first >= last:
                continue
            place = places[rank] + first - my_begins[rank]
            there = stage.window[first - begin : last - begin]
            target[place : place + last - first].copy_(job.read(there, rank))
        job.barrier()
