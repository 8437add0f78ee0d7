# SPDX-License-Identifier: Apache-2.0
"""What the measurements of Python share: their options, and the record (benchmarks/record.py)."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import record  # noqa: E402, F401: for those that import this


def parser(description):
    """With the number of rounds, and the record to add the table to."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--rounds", type=_count, default=7)
    record.option(made)
    return made


def _count(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value}, allowed is 1 and more")
    return value


def size_text(size):
    """As 16 KiB."""
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{size // step} {unit}"
    return f"{size} B"


def show(one):
    """Prints a table of the record."""
    for row in one["rows"]:
        name = ", ".join(str(row[key]) for key in ("name", "size", "processes") if key in row)
        print(f"{name:60}", *(f"{key} {row[key]:.4g}" for key in ("ours", "rival", "ratio", "target") if key in row), sep="  ")
    for remark in one["remarks"]:
        print(remark)
