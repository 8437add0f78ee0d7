# SPDX-License-Identifier: Apache-2.0
"""The table: as text, as Markdown between two markers of a document, and as JSON."""

import platform
import re
import shlex
from datetime import date
from pathlib import Path
from typing import Any

import jobs
from rows import Result

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
    if unit == "Mop/s":
        return f"{value:.3g} Mop/s"
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


def markdown_table(lines: list[list[str]], texts: int = 3) -> str:
    """The first `texts` columns are text."""
    rule = ["---"] * texts + ["---:"] * (len(lines[0]) - texts)
    return "\n".join(f"| {' | '.join(line)} |" for line in [lines[0], rule, *lines[1:]])


def machine() -> dict[str, str]:
    model = "unknown"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = " ".join(line.split(":", 1)[1].split())
            break
    return {"cpu": model, "kernel": platform.release(), "machine": platform.machine()}


def typed_again(program: list[str], chosen: Any, usual: dict[str, Any]) -> str:
    """The command line, without the paths of this machine: options that are lists, where they are not as usual."""
    words = [*program, "--rounds", str(chosen.rounds)]
    for name, value in usual.items():
        if getattr(chosen, name) != value:
            words += [f"--{name}", ",".join(map(str, getattr(chosen, name)))]
    return shlex.join(words)


def facts(rounds: int, load: float, command: str) -> dict:
    """What a table says of its run."""
    return {
        "date": date.today().isoformat(),
        "machine": machine(),
        "cores": jobs.cores(),
        "memspan": jobs.memspan_version(),
        "load": round(load, 1),
        "rounds": rounds,
        "command": command,
    }


def heading(about: dict, sides: str) -> str:
    """`sides` are those that were measured, with their versions."""
    where = about["machine"]
    return (
        f"Measured on {about['date']}: {where['cpu']}, {about['cores']} cores, "
        f"Linux {where['kernel']}; {sides}; load average {about['load']} when it "
        f"began; {about['rounds']} rounds of\n\n"
        f"    {about['command']}"
    )


def remarks(results: list[Result]) -> str:
    """One line for each way in which a side failed; empty if none did."""
    found = {
        f"- {side}, job `{result.row.job}`: {failure}": None
        for result in results
        for side, failures in result.failures.items()
        for failure in failures
    }
    return "\n".join(found)


def full_section(results: list[Result], about: dict) -> str:
    sides = (
        f"memspan {about['memspan']} and OSHMEM {about['rival']} (Open MPI), both compiled with "
        f"{about['compiler']}"
    )
    parts = [heading(about, sides), markdown_table(lines_of(results)), remarks(results)]
    return "\n\n".join(part for part in parts if part)


def rewrite(document: Path, marker: str, section: str) -> bool:
    """Puts `section` between the markers; False where the document has none."""
    begin, end = f"<!-- {marker}:begin -->", f"<!-- {marker}:end -->"
    old = document.read_text() if document.exists() else ""
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(old):
        return False
    document.write_text(pattern.sub(lambda _: f"{begin}\n{section}\n{end}", old, count=1))
    return True


def as_json(results: list[Result], about: dict) -> dict:
    def one(result: Result) -> dict:
        return {
            "operation": result.row.label,
            "figure": result.row.figure,
            "job": result.row.job,
            "processes": result.processes,
            "size": result.row.size,
            "unit": result.unit,
            "memspan": result.median_of("ours"),
            "rival": result.median_of("rival"),
            "bare": result.median_of("bare"),
            "ratio": result.ratio("rival"),
            "quartiles": result.spread(),
            "bare_ratio": result.ratio("bare"),
            "target": result.row.target,
            "bare_target": result.row.bare_target,
            "verdict": result.verdict(),
            "bare_verdict": result.bare_verdict(),
            "rounds": [vars(sample) for sample in result.samples],
            "failures": result.failures,
        }

    return {"about": about, "rows": [one(result) for result in results]}
