# SPDX-License-Identifier: Apache-2.0
"""The contiguous pieces of memory that the blocks of a paged KV cache occupy in a layer's tensor.

A layer's tensor is any strided view with one dimension of blocks: vLLM's [blocks, heads, tokens, content]
in any order in memory, [2, blocks, ...] with keys and values apart, or one layer of a tensor of all layers.
"""

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

__all__ = ["BlockPiece", "by_blocks", "layout_of", "pieces_of"]

_MOST_PIECES = 64


@dataclasses.dataclass(frozen=True)
class BlockPiece:
    """A contiguous piece of each block: that of block i is ``bytes`` bytes at ``base + i * stride``."""

    base: int
    stride: int
    bytes: int


def by_blocks(tensor: "torch.Tensor", blocks: int) -> tuple["torch.Tensor", int]:
    """The tensor with a dimension of just so many blocks, and which one that is: the first, or the
    second behind keys and values. An attention kernel's blocks may be smaller than the scheduler's, so that
    several are one. ValueError for other shapes."""
    import torch

    shape = tensor.shape
    if tensor.dim() > 0 and shape[0] > 0 and shape[0] % blocks == 0:
        dimension = 0
    elif tensor.dim() > 1 and shape[0] == 2 and shape[1] > 0 and shape[1] % blocks == 0:
        dimension = 1
    else:
        raise ValueError(
            f"a cache of shape {tuple(shape)} has {blocks} blocks neither in its first dimension "
            "nor, behind keys and values, in its second"
        )
    if shape[dimension] == blocks:
        return tensor, dimension
    return torch.unflatten(tensor, dimension, (blocks, shape[dimension] // blocks)), dimension


def _of_a_block(tensor: "torch.Tensor", dimension: int) -> list[tuple[int, int]]:
    """(stride in elements, size) of the dimensions within a block, the innermost first."""
    return sorted(
        (tensor.stride(i), tensor.shape[i])
        for i in range(tensor.dim())
        if i != dimension and tensor.shape[i] > 1
    )


def pieces_of(tensor: "torch.Tensor", blocks: int) -> list[BlockPiece]:
    """The pieces of a block of the tensor, in the order of their addresses. ValueError
    for shapes without so many blocks, for blocks in more than 64 pieces or of elements that overlap."""
    tensor, dimension = by_blocks(tensor, blocks)
    element = tensor.element_size()
    run, outer = 1, []
    for stride, size in _of_a_block(tensor, dimension):
        if stride == run and not outer:
            run *= size
        elif stride >= run:
            outer.append((stride, size))
        else:
            raise ValueError(f"elements of a cache of strides {tensor.stride()} overlap")
    offsets = [0]
    for stride, size in outer:
        offsets = [offset + i * stride for i in range(size) for offset in offsets]
    if len(offsets) > _MOST_PIECES:
        raise ValueError(
            f"blocks of a cache of shape {tuple(tensor.shape)} and strides {tensor.stride()} are in "
            f"{len(offsets)} pieces, allowed are up to {_MOST_PIECES}"
        )
    between = tensor.stride(dimension) * element
    if blocks > 1 and between < run * element:
        raise ValueError(f"blocks of a cache of strides {tensor.stride()} overlap")
    return [
        BlockPiece(tensor.data_ptr() + offset * element, between, run * element)
        for offset in sorted(offsets)
    ]


def layout_of(tensor: "torch.Tensor", blocks: int) -> dict[str, Any]:
    """Describes the bytes of a block, independent of the number of blocks and their addresses:
    equal in two processes if blocks can be copied from one to the other. Raises as
    ``pieces_of``."""
    pieces = [piece.bytes for piece in pieces_of(tensor, blocks)]
    tensor, dimension = by_blocks(tensor, blocks)
    inner = [(tensor.shape[i], tensor.stride(i)) for i in range(tensor.dim()) if i != dimension]
    order = sorted(range(len(inner)), key=lambda i: (inner[i][1], i))
    return {
        "type": str(tensor.dtype),
        "shape": [size for size, _ in inner],
        "order": order,  # of the dimensions in memory, the innermost first
        "pieces": pieces,
    }
