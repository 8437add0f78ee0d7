# SPDX-License-Identifier: Apache-2.0
"""Shared by the parts of `shmem.core`: buffers, exceptions, the log."""

from __future__ import annotations

import logging
from typing import Union

from memspan import _core
from memspan.errors import Error as AclshmemError
from memspan.errors import InvalidArgument as AclshmemInvalid
from memspan.types import Buffer as _Bytes
from shmem import startup

__all__ = ["AclshmemError", "AclshmemInvalid", "Buffer", "setup_aclshmem_logger"]

_LEVELS = {"DEBUG": 0, "INFO": 1, "WARN": 2, "WARNING": 2, "ERROR": 3, "FATAL": 4, "CRITICAL": 4}


class Buffer:
    """``length`` bytes of the symmetric heap at ``addr``; itself a writable buffer's source
    (``memoryview(b.view())``, ``numpy.asarray(b.view())``)."""

    def __init__(self, addr: int, length: int, owner: "Buffer | None" = None) -> None:
        self.addr = addr
        self.length = length
        self._owner = owner  # of a peer's: keeps the local one

    def view(self) -> memoryview:
        """The bytes as a memoryview. BufferError when they have been given back."""
        return memoryview(_core.Address(self.addr))[: self.length]

    def __int__(self) -> int:
        return int(self.addr)

    __index__ = __int__

    def __len__(self) -> int:
        return self.length

    def __repr__(self) -> str:
        return f"Buffer(addr={int(self.addr):#x}, length={self.length})"


# What stands for memory here, beside a Buffer: an object with the buffer protocol.
BufferOrBytes = Union[Buffer, _Bytes]


def check(code: int) -> None:
    """AclshmemError or AclshmemInvalid for another code than 0."""
    if code != 0:
        wrong = code in (-1, -2)
        raise (AclshmemInvalid if wrong else AclshmemError)(_core.last_error(), code)


def setup_aclshmem_logger(
    log_level: str = "ERROR", log_file_path: str | None = None
) -> logging.Logger:
    """The library's log from ``log_level`` on (``logging``'s names) goes to the logger "aclshmem", which
    writes to the file, or to stderr without one. AclshmemInvalid for another level."""
    level = log_level.upper()
    if level not in _LEVELS:
        raise AclshmemInvalid(f'log_level is "{log_level}", allowed are {", ".join(_LEVELS)}')
    logger = logging.getLogger("aclshmem")
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()
    logger.addHandler(logging.FileHandler(log_file_path) if log_file_path else logging.StreamHandler())
    logger.setLevel("WARNING" if level == "WARN" else level)
    logger.propagate = False
    check(startup.set_log_level(_LEVELS[level]))
    check(startup.set_extern_logger(lambda level, text: logger.log(10 * (level + 1), text)))
    return logger
