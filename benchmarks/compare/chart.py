# SPDX-License-Identifier: Apache-2.0
"""Draws the pictures of the pages of measurements, as SVG; pages.py says of what.

A picture of bars has a row a figure, with how many times as fast as the rival memspan is. A picture of cells has a row
an operation and a column a size, with the time of memspan over that of the rival. The colours are those of the reader's scheme.
"""

import html
import math
from dataclasses import dataclass

_LEFT, _WIDTH, _RIGHT, _ROW, _TOP, _CELL = 250, 500, 60, 16, 64, 30
_MOST_TICKS = 9
_STYLE = (
    ".page{fill:#ffffff}.text{fill:#1f2328}.dim{fill:#59636e}.grid{stroke:#d1d9e0}.level{stroke:#1f2328}.faster{fill:#00796b}.slower{fill:#bc4c00}"
    ".missed{fill:none;stroke:#bc4c00}"
    "@media (prefers-color-scheme: dark){.page{fill:#161b22}.text{fill:#e6edf3}.dim{fill:#9198a1}.grid{stroke:#3d444d}.level{stroke:#e6edf3}"
    ".faster{fill:#3fb8a5}.slower{fill:#f0883e}.missed{fill:none;stroke:#f0883e}}"
)


@dataclass(frozen=True)
class Bar:
    label: str
    times_as_fast: float  # the rival's time over memspan's


@dataclass(frozen=True)
class Cell:
    text: str
    small: str  # below it
    ratio: float | None  # of times
    is_missed: bool = False


def _text(x: float, y: float, text: str, style: str = "text", anchor: str = "start", size: int = 11) -> str:
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{html.escape(text)}</text>'


def _picture(title: str, below: str, width: float, height: float, inside: list[str]) -> str:
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="sans-serif" role="img">',
        f"<title>{html.escape(title)}</title>",
        f'<style>{_STYLE}</style><rect class="page" width="{width}" height="{height}" rx="8"/>',
        _text(14, 22, title, size=14),
        _text(14, 40, below, "dim"),
    ]
    return "\n".join([*head, *inside]) + "\n</svg>\n"


def _ticks(bars: list[Bar]) -> list[float]:
    """Powers of two around all bars and 1."""
    found = [math.log2(bar.times_as_fast) for bar in bars]
    low, high = min(-1, math.floor(min(found))), max(1, math.ceil(max(found)))
    step = math.ceil((high - low) / (_MOST_TICKS - 1))
    return [2.0 ** (step * i) for i in range(math.floor(low / step), math.ceil(high / step) + 1)]


def bars(title: str, below: str, drawn: list[Bar]) -> str:
    ticks = _ticks(drawn)
    low, high = math.log2(ticks[0]), math.log2(ticks[-1])

    def x(times: float) -> float:
        return _LEFT + _WIDTH * (math.log2(times) - low) / (high - low)

    bottom = _TOP + _ROW * len(drawn)
    out = []
    for tick in ticks:
        out.append(f'<path class="{"level" if tick == 1 else "grid"}" d="M{x(tick):.1f} {_TOP - 6}V{bottom}"/>')
        out.append(_text(x(tick), bottom + 16, f"{tick:,.4g}×", "dim", "middle", 10))
    for number, bar in enumerate(drawn):
        y = _TOP + _ROW * number
        left, right = sorted((x(1), x(bar.times_as_fast)))
        style = "faster" if bar.times_as_fast >= 1 else "slower"
        out.append(_text(_LEFT - 8, y + 11, shortened(bar.label), "text", "end"))
        out.append(f'<rect class="{style}" x="{left:.1f}" y="{y + 2}" width="{max(right - left, 1):.1f}" height="{_ROW - 4}"/>')
        out.append(_text(right + 5, y + 11, times_text(bar.times_as_fast), "text", size=10))
    return _picture(title, f"{below}; logarithmic scale", _LEFT + _WIDTH + _RIGHT, bottom + 30, out)


def cells(title: str, below: str, columns: list[str], rows: list[tuple[str, list[Cell | None]]]) -> str:
    width = max(64, (_WIDTH + _RIGHT) // len(columns))
    out = [_text(_LEFT + width * (i + 0.5), _TOP - 4, column, "dim", "middle", 9) for i, column in enumerate(columns)]
    for number, (label, found) in enumerate(rows):
        y = _TOP + 4 + _CELL * number
        out.append(_text(_LEFT - 8, y + 17, shortened(label), "text", "end"))
        for i, cell in enumerate(found):
            if cell is not None:
                out += _cell(_LEFT + width * i, y, width, cell)
    return _picture(title, below, _LEFT + width * len(columns) + 10, _TOP + 14 + _CELL * len(rows), out)


def _cell(x: float, y: float, width: float, cell: Cell) -> list[str]:
    """The farther from 1 the ratio is, the deeper is the colour."""
    middle = x + width / 2
    out = [_text(middle, y + 13, cell.text, "text", "middle", 12), _text(middle, y + 24, cell.small, "dim", "middle", 8)]
    if cell.ratio is None:
        return out
    depth = min(abs(math.log2(cell.ratio)) / 4, 1) * 0.6
    box = f'x="{x + 1:.1f}" y="{y + 1}" width="{width - 2:.1f}" height="{_CELL - 2}"'
    style = "faster" if cell.ratio <= 1 else "slower"
    frame = [f'<rect class="missed" {box}/>'] if cell.is_missed else []
    return [f'<rect class="{style}" {box} fill-opacity="{depth:.2f}"/>', *frame, *out]


def times_text(times: float) -> str:
    return f"{times:.3g}×" if times < 1000 else f"{times:,.0f}×"


def shortened(text: str) -> str:
    return text if len(text) <= 38 else text[:37] + "…"
