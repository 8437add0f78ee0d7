# SPDX-License-Identifier: Apache-2.0
"""Waits and tests of each type, as the later generation of the interface has them.

For each T of char, float, int8 ... int64 and uint8 ... uint64 there are ``aclshmem_T_wait``,
``_wait_until`` and ``_test``, and for many words ``_all``, ``_any`` and ``_some`` of both and the same
with ``_vector``. They take what the functions of ``shmem.typed`` take and, where those of the later
generation write it, ``res_out`` (a C int for ``_test`` and ``_test_all``, a size_t for the others) and
``indices`` (size_t for each word), as addresses or buffers. The written results are also returned,
and both may be left out.

A word shorter than 4 bytes, or a float, is waited for by the 32-bit words that contain it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from memspan import _core
from memspan.types import Memory
from shmem.types import CmpOp

_c = _core.shmem
_typed: Any = _core.typed

NONE = 2**64 - 1
_INT, _SIZE = "=i", "=Q"
_WORD = 4
# Formats of the types that the library itself has no waits for.
_SHORT = {"char": "b", "float": "f", "int8": "b", "int16": "h", "uint8": "B", "uint16": "H"}
_LONG = ("int32", "int64", "uint32", "uint64")

_HOLDS: dict[int, Callable[[Any, Any], bool]] = {
    CmpOp.CMP_EQ: lambda a, b: a == b,
    CmpOp.CMP_NE: lambda a, b: a != b,
    CmpOp.CMP_GT: lambda a, b: a > b,
    CmpOp.CMP_GE: lambda a, b: a >= b,
    CmpOp.CMP_LT: lambda a, b: a < b,
    CmpOp.CMP_LE: lambda a, b: a <= b,
}


class _Words:
    """``nelems`` elements in the symmetric heap, and what they are compared with."""

    def __init__(
        self, form: str, ivars: Memory, nelems: int, status: Memory | None, cmp: int, values: Any
    ) -> None:
        if cmp not in _HOLDS:
            raise ValueError(f"cmp is {cmp}, allowed are 0 to 5 (CmpOp)")
        self._format = f"={nelems}{form}"
        self._size = struct.calcsize(self._format)
        address = _c.address_of(ivars)
        if address % struct.calcsize(form) != 0:
            raise ValueError(f"ivars is {address:#x}, not a multiple of {struct.calcsize(form)}")
        # The library says what is wrong with memory that is not symmetric.
        _typed.shmem_uint32_test_all(address & -_WORD, 1, None, cmp, 0)
        self._skipped = address % _WORD
        self._base = _core.Address(address - self._skipped)
        self._words = -(-(self._skipped + self._size) // _WORD)
        flags = None if status is None else _unpack(status, f"={nelems}i")
        self.counted = [i for i in range(nelems) if flags is None or flags[i] == 0]
        self._holds = _HOLDS[cmp]
        if isinstance(values, str):  # a char
            values = struct.unpack("b", values.encode("latin-1"))[0]
        is_one = isinstance(values, (int, float))
        self._values = [values] * nelems if is_one else _unpack(values, self._format)

    def look(self) -> tuple[list[int], bytes]:
        """Which hold, and all words as they are."""
        words = _c.load(self._base, self._words * _WORD)
        now = struct.unpack_from(self._format, words, self._skipped)
        return [i for i in self.counted if self._holds(now[i], self._values[i])], words

    def wait(self, wanted: int) -> list[int]:
        """Which hold, once there are as many."""
        while True:
            held, words = self.look()
            if len(held) >= wanted:
                return held
            _typed.shmem_uint32_wait_until_any_vector(
                self._base, self._words, None, CmpOp.CMP_NE, words
            )


def _unpack(memory: Memory, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, _c.load(memory, struct.calcsize(form)))


def _store(name: str, out: Memory | None, form: str, *values: int) -> None:
    if out is not None:
        _c.store(name, out, struct.pack(form, *values))


# ---- the functions of one type, which give what those of shmem.typed do


def _of_long(name: str, form: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(_typed, f"shmem_{name}_{form}")
    return function


def _of_short(name: str, form: str) -> Callable[..., Any]:
    element = _SHORT[name]

    def wait(ivars: Memory, nelems: int, status: Memory | None, cmp: int, values: Any) -> Any:
        words = _Words(element, ivars, nelems, status, cmp, values)
        wanted = len(words.counted) if "all" in form else min(1, len(words.counted))
        return _answer(form, words.wait(wanted), words)

    def test(ivars: Memory, nelems: int, status: Memory | None, cmp: int, values: Any) -> Any:
        words = _Words(element, ivars, nelems, status, cmp, values)
        return _answer(form, words.look()[0], words)

    if form == "wait_until":
        return lambda ivar, cmp, value: _of_short(name, "wait_until_all")(ivar, 1, None, cmp, value)
    if form == "test":
        return lambda ivar, cmp, value: _of_short(name, "test_all")(ivar, 1, None, cmp, value)
    return test if form.startswith("test") else wait


def _answer(form: str, held: list[int], words: _Words) -> Any:
    if "some" in form:
        return held
    if "any" in form:
        return held[0] if held else NONE
    return int(len(held) == len(words.counted)) if form.startswith("test") else None


# ---- with what the later generation writes


def _one(function: Callable[..., Any]) -> Callable[..., Any]:
    def wait_until(ivar: Memory, cmp: int, cmp_value: float) -> None:
        function(ivar, cmp, cmp_value)

    return wait_until


def _equal(function: Callable[..., Any]) -> Callable[..., Any]:
    def wait(ivar: Memory, cmp_value: float) -> None:
        function(ivar, CmpOp.CMP_EQ, cmp_value)

    return wait


def _test(function: Callable[..., Any]) -> Callable[..., Any]:
    def test(ivar: Memory, cmp: int, cmp_value: float, res_out: Memory | None = None) -> int:
        holds: int = function(ivar, cmp, cmp_value)
        _store("res_out", res_out, _INT, holds)
        return holds

    return test


def _many(function: Callable[..., Any], form: str) -> Callable[..., Any]:
    value_name = "cmp_values" if form.endswith("_vector") else "cmp_value"
    kind = next(kind for kind in ("all", "any", "some") if kind in form)
    early = ("status", "cmp", value_name)
    later = {
        "all": (*early, "res_out") if form.startswith("test") else early,
        "any": (*early, "res_out"),
        "some": ("indices", *early, "res_out"),
    }[kind]

    def many(ivars: Memory, nelems: int, *rest: Any, **named: Any) -> Any:
        given = len(rest) + len(named)
        names = early if given == len(early) and "res_out" not in named else later
        arguments = {**dict(zip(names, rest)), **named}
        if given > len(names) or set(arguments) != set(names):
            raise TypeError(f"needed are ivars, nelems, {', '.join(names)}")
        result = function(ivars, nelems, *(arguments[name] for name in early))
        if kind == "some" and "indices" in arguments:
            _store("indices", arguments["indices"], f"={len(result)}Q", *result)
        if arguments.get("res_out") is not None:
            value = len(result) if kind == "some" else result
            _store("res_out", arguments["res_out"], _INT if kind == "all" else _SIZE, value)
        return result

    return many


_SAYS = {
    "wait": "Until the word at ``ivar`` here is ``cmp_value``.",
    "wait_until": "Until the word at ``ivar`` here compares so (``CmpOp``) with ``cmp_value``.",
    "test": "1 when the word at ``ivar`` here compares so with ``cmp_value``, else 0; also to "
    "``res_out``, a C int.",
}
_SAYS_MANY = {
    "all": "all of the ``nelems`` words at ``ivars`` here compare so (``CmpOp``)",
    "any": "one of the ``nelems`` words at ``ivars`` here compares so (``CmpOp``); its index, or "
    "2**64 - 1, also to ``res_out``",
    "some": "some of the ``nelems`` words at ``ivars`` here compare so (``CmpOp``); their indices, "
    "also to ``indices``, and how many to ``res_out``",
}


def _doc(form: str) -> str:
    if form in _SAYS:
        return _SAYS[form]
    kind = next(kind for kind in _SAYS_MANY if kind in form)
    begin = "Whether " if form.startswith("test") else "Until "
    with_what = "``cmp_values``, one for each" if form.endswith("_vector") else "``cmp_value``"
    return f"{begin}{_SAYS_MANY[kind]}. With {with_what}; ``status`` leaves out words, or is None."


def _function(type_name: str, form: str) -> Callable[..., Any]:
    of_type = _of_short if type_name in _SHORT else _of_long
    if form == "wait":
        made = _equal(of_type(type_name, "wait_until"))
    elif form in ("wait_until", "test"):
        made = (_test if form == "test" else _one)(of_type(type_name, form))
    else:
        made = _many(of_type(type_name, form), form)
    made.__name__ = made.__qualname__ = f"aclshmem_{type_name}_{form}"
    made.__doc__ = _doc(form)
    return made


_FORMS = ["wait"] + [
    kind + rest
    for kind in ("wait_until", "test")
    for rest in ("", "_all", "_any", "_some", "_all_vector", "_any_vector", "_some_vector")
]

_MADE = {
    function.__name__: function
    for type_name in (*_SHORT, *_LONG)
    for form in _FORMS
    for function in [_function(type_name, form)]
}
globals().update(_MADE)

__all__ = list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]
