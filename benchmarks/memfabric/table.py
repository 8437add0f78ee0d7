# SPDX-License-Identifier: Apache-2.0
"""The table of MemFabric as text, and its rows as those of records."""

import sys
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compare"))

import report
from report import record
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


def record_tables(results: list[Result]) -> dict[str, list[record.Row]]:
    """By table of the record, the rows of the short list: next to bare copies, next to each rival, and figures by themselves."""
    found: dict[str, list[record.Row]] = {"memfabric": [], "memfabric-limits": [], **{f"memfabric-{side.lower()}": [] for side in RIVALS}}
    for result in (result for result in results if result.row.is_short):
        targets = {target.kind: target.most for target in result.row.targets}
        for side in ("bare", *RIVALS):
            identity = "memfabric" if side == "bare" else f"memfabric-{side.lower()}"
            if result.ratio(side) is not None:
                name, size = name_and_size(result.row)
                sides = [sample.ours for sample in result.samples], [sample.other(side) for sample in result.samples]
                found[identity].append(record.of_rounds(name, "us", *sides, size=size, target=targets.get(side)))
        found["memfabric-limits"] += limit_rows(result, targets)
    return found


def limit_rows(result: Result, targets: dict[str, float]) -> list[record.Row]:
    """The figures that have a target of their own, or no bare way."""
    row, ours = result.row, result.median_of("ours")
    name = ", ".join(filter(None, name_and_size(row)))
    rounds = len(result.samples)
    if "piece" in targets and result.above_bare():
        return [record.Row(f"a piece of {report.size_text(row.size)} above memcpy: {name_and_size(row)[0]}", "ns", ours=median(result.above_bare()), target=targets["piece"], of="ours", rounds=rounds)]
    if {"us", "count"} & targets.keys() or result.ratio("bare") is None:
        return [record.Row(name, row.unit, ours=ours, target=targets.get("us", targets.get("count")), of="ours", rounds=rounds)]
    return []


def name_and_size(row: Row) -> tuple[str, str | None]:
    """As ("write, pool", "32 × 64 KiB")."""
    parts = row.label.split(", ")
    if len(parts) != 3:
        size = size_text(row) if row.size > 10_000 else ""
        return row.label.replace("10,000 times joined and left: once", "join and leave").replace("times joined and left", "joins"), size or None
    place, way, work = parts
    size = work if work == "cache block" else f"{row.pieces:,} × {report.size_text(row.size)}"
    return f"{way}, {place.removeprefix('the ')}", size
