# SPDX-License-Identifier: Apache-2.0
"""Base of objects that own something of the library's."""

from __future__ import annotations

from types import TracebackType
from typing import NoReturn, TypeVar

_Self = TypeVar("_Self", bound="Owner")


class Owner:
    """Ends what it owns by ``destroy()``, at the latest with its last reference; works as a context
    manager."""

    def destroy(self) -> object:
        """Ends what it owns; again is nothing."""
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled or copied: it stands for something of this process"
        )

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.destroy()

    def __del__(self) -> None:
        self.destroy()
