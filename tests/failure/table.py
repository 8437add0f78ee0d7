#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rewrites the table of results in a page: table.py RESULTS PAGE

RESULTS is what run.sh wrote, a line of JSON for each row; the table goes between the lines
"<!-- rows:begin -->" and "<!-- rows:end -->" of PAGE. Only a row that ran and has no failure is shown;
one that failed or was skipped says so."""

import json
import sys

BEGIN = "<!-- rows:begin -->"
END = "<!-- rows:end -->"


def state_of(result):
    if result["skipped"]:
        return f"not run: {result['skipped']}"
    if result["failures"]:
        return f"**not shown**: {result['failures']} of {result['n']} failed"
    return "shown" if result["n"] else "not run"


def milliseconds(value):
    return "" if value is None else f"{value:.1f}"


def line_of(result):
    cells = [
        result["row"],
        result["title"],
        state_of(result),
        str(result["n"]),
        *(milliseconds(result[name]) for name in ("p50_ms", "p99_ms", "max_ms")),
        *(f"{result[name]:g}" if result.get(name) else "" for name in ("promise_ms", "bound_ms")),
    ]
    return "| " + " | ".join(cells) + " |"


def table_of(results):
    seeds = sorted({result["seed"] for result in results})
    return "\n".join(
        [
            "| row | what happens | state | n | p50 ms | p99 ms | longest ms | promised ms | bound ms |",
            "|---|---|---|---|---|---|---|---|---|",
            *(line_of(result) for result in sorted(results, key=lambda r: int(r["row"]))),
            "",
            f"Seed {', '.join(map(str, seeds))}.",
        ]
    )


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: table.py RESULTS PAGE")
    with open(sys.argv[1], encoding="utf-8") as file:
        results = [json.loads(line) for line in file if line.strip()]
    with open(sys.argv[2], encoding="utf-8") as file:
        page = file.read()
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        sys.exit(f"{sys.argv[2]} has no line {BEGIN} before one line {END}")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n{table_of(results)}\n{END}{after}")


if __name__ == "__main__":
    main()
