# SPDX-License-Identifier: Apache-2.0
"""The memory that the blocks of a layer's cache occupy, by heads, and the pieces that move some of
them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from memspan.connectors.cache_layout import by_blocks

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from numpy.typing import NDArray


class Region(NamedTuple):
    """Blocks in memory, of ``heads`` parts each: part ``h`` of block ``b`` is the ``bytes`` from
    ``base + b * block_stride + h * head_stride`` on. ``first_head`` of all workers' heads is part 0."""

    base: int
    block_stride: int
    head_stride: int
    bytes: int
    heads: int
    first_head: int

    @property
    def is_whole(self) -> bool:
        """Whether a block's parts are adjacent."""
        return self.heads == 1 or self.head_stride == self.bytes

    @property
    def is_dense(self) -> bool:
        """Whether blocks are also adjacent."""
        return self.is_whole and self.block_stride == self.heads * self.bytes


def regions_of(tensor: "torch.Tensor", blocks: int, shard: int = 0) -> list[Region]:
    """A layer's tensor of so many blocks: [block, head, token, content], or one that has the blocks in
    its first dimension, or keys and values there and the blocks in the second, whose blocks have one part.
    ``shard``: which of the equal shares of the model's heads it is. ValueError for other shapes, and for
    parts that are not contiguous."""
    element = tensor.element_size()
    if tensor.dim() == 4 and tensor.shape[0] == blocks:
        if not tensor[0, 0].is_contiguous():
            raise ValueError(f"a head of a cache of strides {tensor.stride()} is not contiguous")
        heads = tensor.shape[1]
        between, next_head = (tensor.stride(i) * element for i in (0, 1))
        size = tensor[0, 0].numel() * element
        return [Region(tensor.data_ptr(), between, next_head, size, heads, shard * heads)]
    tensor, dimension = by_blocks(tensor, blocks)
    found = []
    for part in [tensor] if dimension == 0 else [tensor[0], tensor[1]]:
        if not part[0].is_contiguous():
            raise ValueError(f"blocks of a cache of strides {tensor.stride()} are not contiguous")
        size = part[0].numel() * element
        found.append(Region(part.data_ptr(), part.stride(0) * element, 0, size, 1, shard))
    return found


def runs_of(
    mine: "NDArray[np.int64]", theirs: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]":
    """(first block here, first block there, how many) of runs that are consecutive on both sides."""
    breaks = np.flatnonzero((np.diff(mine) != 1) | (np.diff(theirs) != 1)) + 1
    starts = np.concatenate(([0], breaks))
    counts = np.diff(np.concatenate((starts, [len(mine)])))
    return mine[starts], theirs[starts], counts


class Pieces:
    """Addresses here, addresses there and sizes of what one call moves."""

    def __init__(self) -> None:
        self._here: list[Any] = []
        self._there: list[Any] = []
        self._sizes: list[Any] = []

    def add(
        self,
        mine: Region,
        theirs: Region,
        my_blocks: "Sequence[int]",
        their_blocks: "Sequence[int]",
        heads: tuple[int, int] | None = None,
    ) -> None:
        """Blocks of a region here and one there: all heads, which are the same, or those of the model from
        ``heads[0]`` up to ``heads[1]``."""
        own, others = np.asarray(my_blocks, np.int64), np.asarray(their_blocks, np.int64)
        if len(own) == 0:
            return
        first, end = heads or (mine.first_head, mine.first_head + mine.heads)
        count = end - first
        here = mine.base + (first - mine.first_head) * mine.head_stride
        there = theirs.base + (first - theirs.first_head) * theirs.head_stride
        if mine.is_dense and theirs.is_dense and count == mine.heads == theirs.heads:
            own, others, runs = runs_of(own, others)
            self._append(here + own * mine.block_stride, there + others * theirs.block_stride,
                         runs * mine.block_stride)
        elif mine.is_whole and theirs.is_whole:
            self._append(here + own * mine.block_stride, there + others * theirs.block_stride,
                         np.full(len(own), count * mine.bytes, np.int64))
        else:
            parts = np.arange(count, dtype=np.int64)
            self._append(
                (here + own[:, None] * mine.block_stride + parts * mine.head_stride).ravel(),
                (there + others[:, None] * theirs.block_stride + parts * theirs.head_stride).ravel(),
                np.full(len(own) * count, mine.bytes, np.int64),
            )

    def _append(self, here: Any, there: Any, sizes: Any) -> None:
        self._here.append(here)
        self._there.append(there)
        self._sizes.append(sizes)

    def arrays(self) -> "tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]":
        """All that was added: addresses here, addresses there, sizes in bytes."""
        if not self._here:
            empty = np.zeros(0, np.uint64)
            return empty, empty, empty
        here, there, sizes = (
            np.concatenate(arrays).astype(np.uint64)
            for arrays in (self._here, self._there, self._sizes)
        )
        return here, there, sizes
