# SPDX-License-Identifier: Apache-2.0
"""The exceptions of memspan's Python packages. Every exception has the library's sentence as its
text."""


class Error(RuntimeError):
    """A call failed. `code` is its number in the C interface. `results`: the codes of a batch's elements
    in their order, if the call has one for each; else None."""

    def __init__(self, message: str = "", code: int = -1) -> None:
        super().__init__(message)
        self.code = code
        self.results: list[int] | None = None

    @property
    def msg(self) -> str:
        """Only the text."""
        return str(self)


class InvalidArgument(Error, ValueError):
    """A mistake of the program's: the text says which value, and which are allowed."""


class OutOfMemory(Error, MemoryError):
    """The process, or the host's memory for it, has too little memory for the call."""


class PeerFailed(Error):
    """Another process died, or its endpoint ended."""


class Timeout(Error, TimeoutError):
    """Others did not do in time what the call needs of them."""
