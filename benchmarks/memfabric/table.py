# SPDX-License-Identifier: Apache-2.0
"""The table of MemFabric: as text, as Markdown, and as JSON."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compare"))

import report
from workloads import RIVALS, Result, Row, Target

HEADINGS = ["operation", "size", "memspan", "rate", "bare", "memspan / bare", *RIVALS, "target", "result"]


def value_text(row: Row, value: float | None) -> str:
    if value is None:
        return "-"
    if row.unit != "us":
        return f"{value:.0f} {row.unit}".rstrip()
    return report.value_text(value, "us")


def rate_text(row: Row, value: float | None) -> str:
    """Of what a call moves; empty where that is no figure."""
    if not row.total or not value or row.pieces == 1:
        return ""
    return f"{row.total / value / 1e3:.3g} GB/s"


def target_text(target: Target) -> str:
    if target.kind == "us":
        return f"≤ {report.value_text(target.most, 'us')}"
    if target.kind == "piece":
        return f"≤ {target.most:.0f} ns a piece above bare"
    if target.kind == "count":
        return f"≤ {target.most:.0f}"
    return f"{target.kind} × ≤ {target.most:.2f}"


def verdict_text(result: Result, target: Target) -> str:
    values = sorted(result.values(target))
    if target.kind == "piece" and values:
        return f"{values[len(values) // 2]:.0f} ns, {result.verdict(target)}"
    return result.verdict(target)


def size_text(row: Row) -> str:
    if row.figure == "bm_start" or row.figure.startswith("churn"):
        return ""
    if row.figure.endswith("block"):
        return "61 × 128 KiB + 61 × 16 KiB"
    return report.size_text(row.size)


def cells(result: Result) -> list[str]:
    row = result.row
    ours, ratio = result.median_of("ours"), result.ratio("bare")
    rivals = []
    for side in RIVALS:
        value, of_us = result.median_of(side), result.ratio(side)
        rivals.append("-" if value is None else f"{value_text(row, value)} ({of_us:.3f})")
    return [
        row.label,
        size_text(row),
        value_text(row, ours),
        rate_text(row, ours),
        value_text(row, result.median_of("bare")),
        "-" if ratio is None else f"{ratio:.3f}",
        *rivals,
        "; ".join(target_text(target) for target in row.targets),
        "; ".join(verdict_text(result, target) for target in row.targets),
    ]


def text(results: list[Result]) -> str:
    lines = [HEADINGS, *(cells(result) for result in results)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines
    )


def section(results: list[Result], about: dict, remarks: list[str]) -> str:
    intro = report.heading(about, f"memspan {about['memspan']}")
    lines = [HEADINGS, *(cells(result) for result in results if result.row.is_short)]
    rule = ["---"] * 2 + ["---:"] * (len(HEADINGS) - 4) + ["---"] * 2
    body = "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])
    said = "\n".join(f"- {remark}" for remark in remarks)
    return "\n\n".join(part for part in (intro, body, said) if part)


def as_json(results: list[Result], about: dict, remarks: list[str]) -> dict:
    def one(result: Result) -> dict:
        row = result.row
        return {
            "operation": row.label,
            "figure": row.figure,
            "size": row.size,
            "unit": row.unit,
            "memspan": result.median_of("ours"),
            "bare": result.median_of("bare"),
            "bare_ratio": result.ratio("bare"),
            "rivals": {side: result.median_of(side) for side in RIVALS},
            "ratios": {side: result.ratio(side) for side in RIVALS},
            "targets": [vars(target) | {"verdict": result.verdict(target)} for target in row.targets],
            "rounds": [vars(sample) for sample in result.samples],
        }

    return {"about": about, "remarks": remarks, "rows": [one(result) for result in results]}
