# SPDX-License-Identifier: Apache-2.0
"""The table as text, and its rows as those of a record."""

import dataclasses
import shlex
import sys
from pathlib import Path
from typing import Any

from rows import Result

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import record  # noqa: E402

HEADINGS = [
    "operation",
    "processes",
    "size",
    "memspan",
    "OSHMEM",
    "bare",
    "memspan / OSHMEM",
    "quartiles",
    "target",
    "result",
    "memspan / bare",
]


def size_text(size: int) -> str:
    for unit, step in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= step:
            return f"{size // step} {unit}"
    return f"{size} B" if size else ""


def value_text(value: float | None, unit: str) -> str:
    """Three digits in the unit that reads best."""
    if value is None:
        return "-"
    if unit == "MB/s":
        return f"{value / 1000:.3g} GB/s" if value >= 1000 else f"{value:.3g} MB/s"
    if unit in ("Mop/s", "MiB"):
        return f"{value:.3g} {unit}"
    nanoseconds = value * (1000 if unit == "us" else 1)
    for name, step in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if nanoseconds >= step:
            return f"{nanoseconds / step:.3g} {name}"
    return f"{nanoseconds:.3g} ns"


def side_text(result: Result, side: str, name: str) -> str:
    failures = result.failures.get(name, [])
    text = value_text(result.median_of(side), result.unit)
    if not failures:
        return text
    crashed = failures[0]
    if len(failures) < len(result.samples):
        crashed += f", {len(failures)} of {len(result.samples)} rounds"
    return crashed if text == "-" else f"{text} ({crashed})"


def cells(result: Result, ours: str, rival: str) -> list[str]:
    row = result.row
    ratio, bare, spread = result.ratio("rival"), result.ratio("bare"), result.spread()
    bare_text = "-" if bare is None else f"{bare:.2f}"
    if result.bare_verdict():
        bare_text += f" (≤ {row.bare_target:.2f} {result.bare_verdict()})"
    return [
        row.label,
        str(result.processes),
        size_text(row.size),
        side_text(result, "ours", ours),
        side_text(result, "rival", rival),
        value_text(result.median_of("bare"), result.unit),
        "-" if ratio is None else f"{ratio:.3f}",
        "-" if spread is None else f"{spread[0]:.3f} - {spread[1]:.3f}",
        f"≤ {row.target:.2f}",
        result.verdict(),
        bare_text,
    ]


def lines_of(results: list[Result], ours: str = "memspan", rival: str = "OSHMEM") -> list[list[str]]:
    """The headings and the rows."""
    headings = [h.replace("memspan", ours).replace("OSHMEM", rival) for h in HEADINGS]
    return [headings, *(cells(r, ours, rival) for r in results)]


def text_table(lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()
        for line in lines
    )


def typed_again(program: list[str], chosen: Any, usual: dict[str, Any]) -> str:
    """The command line, without the paths of this machine: options that are lists, where they are not as usual."""
    words = [*program, "--rounds", str(chosen.rounds)]
    for name, value in usual.items():
        if getattr(chosen, name) != value:
            words += [f"--{name}", ",".join(map(str, getattr(chosen, name)))]
    return shlex.join(words)


def remarks(results: list[Result]) -> str:
    """One line for each way in which a side failed; empty if none did."""
    found = {
        f"- {side}, job `{result.row.job}`: {failure}": None
        for result in results
        for side, failures in result.failures.items()
        for failure in failures
    }
    return "\n".join(found)


def row_of(result: Result, name: str | None = None, side: str = "rival", **more: Any) -> record.Row:
    """A row of a record, `side` ("rival", "bare") is the one next to memspan."""
    sides = [[getattr(sample, name) for sample in result.samples] for name in ("ours", side)]
    failures = [said for found in result.failures.values() for said in found]
    more.setdefault("size", size_text(result.row.size) or None)
    more.setdefault("processes", result.processes)
    target = result.row.bare_target if side == "bare" else result.row.target
    row = record.of_rounds(name or result.row.label, result.unit, *sides, target=target, **more)
    return dataclasses.replace(row, failure=failures[0] if failures and row.ratio is None else None)
