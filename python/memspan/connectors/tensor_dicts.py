# SPDX-License-Identifier: Apache-2.0
"""Dictionaries of tensors from one rank of a process group to another: what a pipeline stage of an engine gives to
the next one.

A message of ``_FIRST_BYTES`` says what comes: the length of a description, a JSON list of (key, type, sizes), and
as much of it as fits; the rest is a message of its own. Then each tensor that has elements is a message.
"""

import json
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

_FIRST_BYTES = 1024
_LENGTH = struct.Struct("<Q")
_MOST_BYTES = 1 << 24  # of a description; more is not one of ours


def send(tensors: "dict[str, torch.Tensor]", dst: int, group: "ProcessGroup") -> None:
    """To the rank ``dst`` of the group; returns when the messages are on their way and the tensors may change.
    RuntimeError for a value that is no tensor of the CPU and for a key that is no text; nothing was sent then."""
    import torch
    import torch.distributed as dist

    description = describe(tensors)
    first, rest = _split(description)
    for message in (first, rest):
        if message:
            dist.send(torch.frombuffer(message, dtype=torch.uint8), group=group, group_dst=dst)
    for tensor in tensors.values():
        if tensor.numel() > 0:
            dist.send(tensor, group=group, group_dst=dst)


def receive(src: int, group: "ProcessGroup") -> "dict[str, torch.Tensor]":
    """Receives what the rank ``src`` of the group sent; new tensors. RuntimeError for an invalid
    description."""
    import torch
    import torch.distributed as dist

    first = torch.empty(_FIRST_BYTES, dtype=torch.uint8)
    dist.recv(first, group=group, group_src=src)
    start = first.numpy().tobytes()
    (length,) = _LENGTH.unpack_from(start)
    if length > _MOST_BYTES:
        raise RuntimeError(f"a description of {length} bytes, allowed are up to {_MOST_BYTES}")
    text = start[_LENGTH.size : _LENGTH.size + length]
    if len(text) < length:
        rest = torch.empty(length - len(text), dtype=torch.uint8)
        dist.recv(rest, group=group, group_src=src)
        text += rest.numpy().tobytes()
    tensors = empty(text)
    for tensor in tensors.values():
        if tensor.numel() > 0:
            dist.recv(tensor, group=group, group_src=src)
    return tensors


def describe(tensors: "dict[str, Any]") -> bytes:
    """The description of tensors. RuntimeError as in ``send``."""
    import torch

    rows = []
    for key, value in tensors.items():
        if not isinstance(key, str):
            raise RuntimeError(f"a key of a dictionary of tensors is {key!r}, allowed are texts")
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            kind = value.device if isinstance(value, torch.Tensor) else type(value).__name__
            raise RuntimeError(f'"{key}" is of {kind}, allowed are tensors of the CPU')
        rows.append([key, str(value.dtype).removeprefix("torch."), list(value.shape)])
    return json.dumps(rows).encode()


def empty(description: bytes) -> "dict[str, torch.Tensor]":
    """Tensors as they were described, with no values yet. RuntimeError when it describes none."""
    import torch

    try:
        rows = json.loads(description)
        return {key: torch.empty(sizes, dtype=getattr(torch, name)) for key, name, sizes in rows}
    except (ValueError, TypeError, AttributeError) as error:
        raise RuntimeError(f"no description of tensors: {description[:80]!r}") from error


def _split(description: bytes) -> tuple[bytearray, bytearray]:
    """The first message, and what does not fit into it."""
    room = _FIRST_BYTES - _LENGTH.size
    first = bytearray(_LENGTH.pack(len(description)) + description[:room])
    return first.ljust(_FIRST_BYTES, b"\0"), bytearray(description[room:])
