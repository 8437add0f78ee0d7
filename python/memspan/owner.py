# SPDX-License-Identifier: Apache-2.0
"""Base of objects that own something of the library's."""

from __future__ import annotations

import _thread
import contextlib
from collections.abc import Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar

from memspan import _core

_Self = TypeVar("_Self", bound="Owner")


class Owner:
    """Ends what it owns by ``destroy()``, at the latest with its last reference, or soon after it if the
    library called the function that dropped it; works as a context manager."""

    def destroy(self) -> object:
        """Ends what it owns; again is nothing."""
        raise NotImplementedError

    _handle = 0

    def _end(self, function: Callable[[int], Any]) -> Any:
        """Calls ``function`` with the handle, once. It stays if it cannot end in this callback."""
        handle, self._handle = self._handle, 0
        if not handle:
            return None
        try:
            return function(handle)
        except RuntimeError:
            if _core.is_called_back():
                self._handle = handle
            raise

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
        if not _core.is_called_back():
            self.destroy()
            return
        # A callback cannot end what called it. A thread of the module threading would need its locks.
        with contextlib.suppress(RuntimeError):  # the interpreter ends, and the library with it
            _thread.start_new_thread(self.destroy, ())
