# SPDX-License-Identifier: Apache-2.0
"""What the measurements of Python share: their options, and where their tables go."""

import argparse
from pathlib import Path

_PAGE = Path(__file__).resolve().parents[2] / "docs" / "performance.md"


def parser(description):
    """With the number of rounds, and whether to write the table down."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--rounds", type=_count, default=7)
    made.add_argument("--write-docs", action="store_true", help="put the table into docs/performance.md")
    return made


def _count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, allowed is 1 and more")
    return value


def show(text, part, writes):
    """Prints the table; with `writes` it takes the place of the part's table on the page."""
    print(text)
    if writes:
        write(text, part)


def write(text, part):
    """In the place of what is between the part's markers on the page."""
    begin, end = f"<!-- {part}:begin -->", f"<!-- {part}:end -->"
    page = _PAGE.read_text(encoding="utf-8")
    before, rest = page.split(begin)
    _PAGE.write_text(f"{before}{begin}\n{text}\n{end}{rest.split(end)[1]}", encoding="utf-8")
