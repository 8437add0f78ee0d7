# SPDX-License-Identifier: Apache-2.0
"""Plots of the tables of a page, drawn when the site is built, so that a plot is always its table.

    <!-- plot: bars; label=1,2; values=4,5; unit=µs; scale=log; title=... -->

stands before a table, or before the lines that a benchmark writes, in which the table is; the plot stands in
its place. label: the columns (from 1) that name a row; values: the columns that are drawn. The
number of a cell is its first one; a cell without a number has no bar. unit: what all values are brought to,
where cells have units of their own. only: a regular expression of the rows' names. line=X draws a line at X, for tables of ratios.
"""

import html
import math
import re

MARK = re.compile(r"^<!-- plot: bars;(?P<how>[^\n]*) -->\n(?P<text>(?:(?!\|)[^\n]*\n)*)(?P<table>(?:\|[^\n]*\n)+)", flags=re.M)
_NUMBER = re.compile(r"(?<![\w.])([0-9][0-9,]*(?:\.[0-9]+)?)\s*([a-zA-Zµ%/]*)")
_FACTORS = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1.0, "MB/s": 1e6, "GB/s": 1e9, "kB/s": 1e3}
_COLOURS = ["#00796b", "#b0723a", "#5c6bc0", "#8e8e8e"]
_LEFT, _WIDTH, _BAR, _GAP = 250, 480, 11, 9


def rows_of(table: str) -> list[list[str]]:
    rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table.strip().split("\n")]
    return [rows[0], *rows[2:]]


def number(cell: str, unit: str | None) -> float | None:
    found = _NUMBER.search(cell)
    if found is None:
        return None
    value = float(found[1].replace(",", ""))
    if unit in _FACTORS and found[2] in _FACTORS:
        value *= _FACTORS[found[2]] / _FACTORS[unit]
    return value


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="currentColor">'
        f"{html.escape(text)}</text>"
    )


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _scale(values: list[float], is_log: bool):
    high = max(values)
    if not is_log:
        return lambda v: _WIDTH * v / high
    low = 10 ** math.floor(math.log10(min(v for v in values if v > 0)))
    span = math.log10(high / low) or 1
    return lambda v: _WIDTH * max(math.log10(max(v, low) / low), 0) / span


def svg(table: str, how: dict[str, str]) -> str:
    head, *rows = rows_of(table)
    labels = [int(n) - 1 for n in how["label"].split(",")]
    columns = [int(n) - 1 for n in how["values"].split(",")]
    unit = how.get("unit")
    drawn = [
        (" · ".join(re.sub(r"[`*]", "", row[i]) for i in labels if row[i]), [number(row[i], unit) for i in columns])
        for row in rows
    ]
    only = re.compile(how.get("only", ""))
    drawn = [(label, values) for label, values in drawn if only.search(label) and any(v is not None for v in values)]
    everything = [v for _, values in drawn for v in values if v is not None]
    if not everything:
        raise SystemExit(f"plot {how.get('title')}: the table has no numbers in columns {how['values']}")
    x = _scale([*everything, *([float(how["line"])] if "line" in how else [])], how.get("scale") == "log")
    out, y = [], 24.0
    out.append(_text(0, 14, how.get("title", ""), size=13))
    for k, column in enumerate(columns):
        if len(columns) > 1:
            out.append(f'<rect x="{k * 240}" y="{y - 4}" width="10" height="10" fill="{_COLOURS[k]}"/>')
            out.append(_text(k * 240 + 15, y + 5, re.sub(r"[`*]", "", head[column])[:34]))
    y += 16 if len(columns) > 1 else 0
    top = y
    for label, values in drawn:
        out.append(_text(_LEFT - 8, y + _BAR * len(values) / 2 + 4, label[:44], "end"))
        for k, value in enumerate(values):
            if value is not None:
                out.append(f'<rect x="{_LEFT}" y="{y:.1f}" width="{max(x(value), 1):.1f}" height="{_BAR - 1}" fill="{_COLOURS[k]}"/>')
                out.append(_text(_LEFT + max(x(value), 1) + 4, y + _BAR - 2, f"{_short(value)} {unit or ''}".strip(), size=10))
            y += _BAR
        y += _GAP
    if "line" in how:
        at = _LEFT + x(float(how["line"]))
        out.append(f'<path d="M{at:.1f} {top - 4:.1f}V{y:.1f}" stroke="currentColor" stroke-dasharray="4 3"/>')
    if how.get("scale") == "log":
        out.append(_text(_LEFT, y + 8, "logarithmic scale", size=10))
        y += 14
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 90} {y + 4:.0f}" '
        f'font-family="sans-serif" role="img" aria-label="{html.escape(how.get("title", ""), quote=True)}">{"".join(out)}</svg>'
    )


def with_plots(markdown: str) -> str:
    def with_plot(mark: re.Match) -> str:
        how = dict(word.strip().split("=", 1) for word in mark["how"].split(";") if word.strip())
        return f'<div class="plot">{svg(mark["table"], how)}</div>\n\n{mark["text"]}{mark["table"]}'

    marks = len(re.findall(r"^<!-- plot:", markdown, flags=re.M))
    if marks != len(MARK.findall(markdown)):
        raise SystemExit("a line <!-- plot: ... --> stands before no table, or asks for something other than bars")
    return MARK.sub(with_plot, markdown)
