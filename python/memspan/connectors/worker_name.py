# SPDX-License-Identifier: Apache-2.0
"""How the requests of one engine name the workers of another."""

from __future__ import annotations

import re
from typing import NamedTuple

_HEX = re.compile("[0-9a-f]{1,16}", re.ASCII)


class Place(NamedTuple):
    """The place of a worker's directory in its own memory, in bytes."""

    address: int
    size: int


class WorkerName(NamedTuple):
    """``str()`` and ``parse`` are each other's inverse."""

    name: str  # of its endpoint, HOST:PORT
    epoch: int  # of its process
    directory: Place

    def __str__(self) -> str:
        return f"{self.name}/{self.epoch:x}/{self.directory.address:x}/{self.directory.size:x}"

    @staticmethod
    def parse(text: str) -> "WorkerName":
        """ValueError."""
        name, *numbers = text.split("/")
        if ":" not in name or len(numbers) != 3 or not all(map(_HEX.fullmatch, numbers)):
            raise ValueError(f"{text!r} names no worker")
        epoch, address, size = (int(number, 16) for number in numbers)
        return WorkerName(name, epoch, Place(address, size))
