# SPDX-License-Identifier: Apache-2.0
"""Where the blocks of a paged cache lie in a layer's tensor."""

import ctypes

import pytest
from memspan.connectors.cache_layout import layout_of, pieces_of

torch = pytest.importorskip("torch", reason="needs=torch")


def laid_out():
    """Tensors of six blocks of [2 heads, 4 tokens, 8 numbers], by name, and bytes of their pieces."""
    whole = torch.arange(6 * 2 * 4 * 8, dtype=torch.float32)
    return {
        "blocks first": (whole.view(6, 2, 4, 8), [256]),
        "tokens before heads": (whole.view(6, 4, 2, 8).transpose(1, 2), [256]),
        "keys and values apart": (whole.view(2, 6, 4, 8), [128, 128]),
        "one layer of a block of three": (torch.zeros(6, 3, 2, 4, 8)[:, 1], [256]),
        "kernel blocks of half the size": (whole.view(12, 2, 2, 8), [256]),
        "heads of all blocks behind each other": (whole.view(2, 6, 4, 8).transpose(0, 1), [128, 128]),
    }


@pytest.mark.parametrize("name", ["blocks first", "tokens before heads", "keys and values apart",
                                  "one layer of a block of three", "kernel blocks of half the size", "heads of all blocks behind each other"])
def test_pieces_are_all_bytes_of_a_block(name):
    tensor, sizes = laid_out()[name]
    tensor.zero_()
    pieces = pieces_of(tensor, 6)
    assert [piece.bytes for piece in pieces] == sizes
    for piece in pieces:
        ctypes.memset(piece.base + 2 * piece.stride, 0x3F, piece.bytes)
    third = tensor[:, 2] if name == "keys and values apart" else tensor[2]
    if name == "kernel blocks of half the size":
        third = tensor[4:6]
    assert (third != 0).all() and (tensor != 0).sum() == third.numel()


def test_layouts_are_equal_when_blocks_can_be_exchanged():
    first, other = torch.zeros(6, 2, 4, 8), torch.zeros(9, 2, 4, 8)
    assert layout_of(first, 6) == layout_of(other, 9)
    assert layout_of(first, 6) == layout_of(torch.zeros(6, 3, 2, 4, 8)[:, 1], 6)
    for different in (torch.zeros(6, 4, 2, 8).transpose(1, 2), torch.zeros(6, 2, 4, 8, dtype=torch.int32),
                      torch.zeros(6, 2, 8, 4)):
        assert layout_of(first, 6) != layout_of(different, 6)
    for tensor in (first, torch.zeros(6, 1, 1, 1).expand(6, 2, 4, 8)):
        with pytest.raises(ValueError, match="7 blocks|overlap"):
            layout_of(tensor, 7 if tensor is first else 6)
    with pytest.raises(ValueError, match="in 1600 pieces"):
        pieces_of(torch.zeros(6, 800, 2, 8)[..., 0], 6)
