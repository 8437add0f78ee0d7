#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The remedies that the sources declare (src/core/status.h), for the site and for tests. Prints them as Markdown."""

import ast
import pathlib
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
_BEGINS = {"src": (".cc", "MEMSPAN_REMEDY("), "tools": (".cc", "MEMSPAN_REMEDY("), "python": (".py", " = remedy(")}


class Remedy(NamedTuple):
    identifier: str
    meaning: str
    action: str
    path: str


def remedies() -> list[Remedy]:
    """In the order of the files' names. Strings of C++ without escapes are strings of Python."""
    found = []
    for top, (suffix, begins) in _BEGINS.items():
        for path in sorted((ROOT / top).rglob(f"*{suffix}")):
            for part in path.read_text(encoding="utf-8").split(begins)[1:]:
                strings = part[part.index('"') : part.index('")') + 1]
                found.append(Remedy(*ast.literal_eval(f"({strings})"), path.relative_to(ROOT).as_posix()))
    return found


def page() -> str:
    """What the site's page on failures has behind its own text."""
    entries = sorted(remedies())
    return "".join(f"\n### {r.identifier}\n\n{r.meaning}\n\n**Do:** {r.action}\n" for r in entries)


if __name__ == "__main__":
    print(page(), end="")
