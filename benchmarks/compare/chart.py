#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the chart of the README from the table of docs/performance.md between the markers `compare`.

    chart.py            writes docs/pictures/compare.svg and the lines of the README between its markers

The rule, whatever the results are: every row of the table that has two processes, in the table's order, with
OSHMEM's time over memspan's. The machine and the date are those that the table names.
"""

import html
import math
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import report

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "performance.md"
PICTURE = ROOT / "docs" / "pictures" / "compare.svg"
README = ROOT / "README.md"
PROCESSES = "2"

_MACHINE = re.compile(r"^Measured on (?P<date>[\d-]+): (?P<cpu>.*?), (?P<cores>\d+) cores?, .*? and OSHMEM (?P<rival>[\w.]+) ", re.M)
_LEFT, _WIDTH, _RIGHT, _ROW, _TOP = 190, 500, 60, 16, 64
_TICKS = (0.5, 1, 2, 4, 8, 16, 32, 64)
# Readable without the reader's colour scheme, too: the picture brings its own background.
_STYLE = (
    ".page{fill:#ffffff}.text{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d1d9e0}.level{stroke:#1f2328}.faster{fill:#00796b}.slower{fill:#bc4c00}"
    "@media (prefers-color-scheme: dark){.page{fill:#161b22}.text{fill:#e6edf3}.dim{fill:#9198a1}.grid{stroke:#3d444d}.level{stroke:#e6edf3}"
    ".faster{fill:#3fb8a5}.slower{fill:#f0883e}}"
)


@dataclass(frozen=True)
class Bar:
    label: str
    times_as_fast: float  # OSHMEM's time over memspan's


def section(text: str) -> str:
    return text.split("<!-- compare:begin -->")[1].split("<!-- compare:end -->")[0]


def bars(text: str) -> list[Bar]:
    """Of the rows of two processes; a row in which a side failed has no ratio and is left out."""
    out = []
    for line in section(text).splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == len(report.HEADINGS) and cells[1] == PROCESSES and re.fullmatch(r"[\d.]+", cells[6]):
            out.append(Bar(f"{cells[0]}, {cells[2]}" if cells[2] else cells[0], 1 / float(cells[6])))
    return out


def machine(text: str) -> str:
    found = _MACHINE.search(section(text))
    if found is None:
        raise SystemExit(f"chart: {TABLE} does not begin with the machine and the date")
    return f"{found['cpu']}, {found['cores']} cores; Open MPI's OSHMEM {found['rival']}; measured on {found['date']}"


def _text(x: float, y: float, text: str, style: str = "text", anchor: str = "start", size: int = 11) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(text)}</text>'


def _x(times: float) -> float:
    low, high = math.log2(_TICKS[0]), math.log2(_TICKS[-1])
    return _LEFT + _WIDTH * (min(max(math.log2(times), low), high) - low) / (high - low)


def svg(text: str) -> str:
    drawn = bars(text)
    bottom = _TOP + _ROW * len(drawn)
    width, height = _LEFT + _WIDTH + _RIGHT, bottom + 30
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" role="img">',
        f"<title>{html.escape(alternative(text))}</title>",
        f'<style>{_STYLE}</style><rect class="page" width="{width}" height="{height}" rx="8"/>',
        _text(14, 22, "memspan and OSHMEM, two processes of one host: how many times as fast memspan is", size=14),
        _text(14, 40, f"{machine(text)}; logarithmic scale", "dim"),
    ]
    for tick in _TICKS:
        out.append(f'<path class="{"level" if tick == 1 else "grid"}" d="M{_x(tick):.1f} {_TOP - 6}V{bottom}"/>')
        out.append(_text(_x(tick), bottom + 16, f"{tick:g}×", "dim", "middle", 10))
    for number, bar in enumerate(drawn):
        y = _TOP + _ROW * number
        left, right = sorted((_x(1), _x(bar.times_as_fast)))
        style = "faster" if bar.times_as_fast >= 1 else "slower"
        out.append(_text(_LEFT - 8, y + 11, bar.label, "text", "end"))
        out.append(f'<rect class="{style}" x="{left:.1f}" y="{y + 2}" width="{max(right - left, 1):.1f}" height="{_ROW - 4}"/>')
        out.append(_text(right + 5, y + 11, f"{bar.times_as_fast:.3g}×", "text", size=10))
    return "\n".join(out) + "\n</svg>\n"


def alternative(text: str) -> str:
    """The chart in a sentence, for readers who do not see it."""
    drawn = bars(text)
    faster = sum(bar.times_as_fast >= 1 for bar in drawn)
    middle = sorted(bar.times_as_fast for bar in drawn)[len(drawn) // 2]
    return f"memspan is faster than OSHMEM in {faster} of {len(drawn)} rows with two processes, and {middle:.1f} times as fast in the median row"


def lines(text: str) -> str:
    """What the README has between its markers."""
    picture = f"![How many times as fast as OSHMEM memspan is, row by row]({PICTURE.relative_to(ROOT).as_posix()})"
    return f"{picture}\n\n{alternative(text)} ({machine(text)})."


def write() -> None:
    text = TABLE.read_text(encoding="utf-8")
    PICTURE.write_text(svg(text), encoding="utf-8")
    if not report.rewrite(README, "compare-chart", lines(text)):
        raise SystemExit(f"chart: {README} has no markers named compare-chart")


if __name__ == "__main__":
    sys.exit(write())
