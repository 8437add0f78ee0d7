#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the figures of README.md, docs/performance.md and docs/performance/*.md from the records of all machines.

    pages.py            rewrites the pages and their pictures
    pages.py --check    changes nothing, names the pages that are not those of the records and fails if there are any
    pages.py --try FILE changes nothing, makes all pages with FILE in the place of the record of its name

A page has its text, and between `<!-- measured: WHAT -->` and `<!-- measured:end -->` what this program writes:

    table ID    a table of the records (record.py), its picture first; machines that have it are side by side
    summary     one row a table that has a rival: how many rows there are, and in how many memspan is faster
    misses      the rows of all tables that do not meet their targets
    machines    what was measured on
    picture     the chart of the README

An operation that was measured at three sizes and more has one line, and its sizes are in the picture (chart.py).
"""

import argparse
import itertools
import json
import os
import re
import sys
from pathlib import Path
from statistics import median

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "compare")]

import chart  # noqa: E402
import record  # noqa: E402
import report  # noqa: E402

README, INDEX = record.ROOT / "README.md", record.ROOT / "docs/performance.md"
PICTURES = record.ROOT / "docs/pictures"
COMPARE = PICTURES / "compare.svg"
MARK = re.compile(r"(<!-- measured: (\w+) ?([\w-]*) -->\n).*?(<!-- measured:end -->)", re.S)
COLUMNS = 5
LEAST_SIZES = 3
FAR_APART = 10  # the two middle ratios of a table, whose mean is then near no row


def pages():
    return [README, INDEX, *sorted((record.ROOT / "docs/performance").glob("*.md"))]


def name_of(machine):
    """As AMD EPYC: the processor's maker and kind."""
    return " ".join(machine["processor"].replace("(R)", "").split()[:2])


# ---- cells


def value_text(value, unit):
    if value is None:
        return "-"
    if unit in ("us", "ns", "MB/s", "Mop/s"):
        return report.value_text(value, unit)
    return f"{value:.3g} {unit}".strip() if abs(value) < 1000 else f"{value:,.0f} {unit}".strip()


def ratio_text(value):
    return "-" if value is None else f"{value:.2f}" if value >= 0.095 else f"{value:.2g}"


def marked(text, row, of):
    """Bold where the target is missed, in italics where the run could not say."""
    mark = {"missed": "**", "level": "*"}.get(row.verdict() if row.of == of else None, "")
    return f"{mark}{text}{mark}"


def ratio_cell(row):
    spread = "" if row.upper is None else f" ({ratio_text(row.lower)}–{ratio_text(row.upper)})"
    return marked(ratio_text(row.ratio), row, "ratio") + spread


def compact(row):
    """Ratio and time in one cell; the time where there is no ratio."""
    if row is None:
        return "-"
    ours = value_text(row.ours, row.unit)
    if row.ratio is None:
        return row.failure or marked(ours, row, "ours")
    return f"{marked(ratio_text(row.ratio), row, 'ratio')} ({ours})"


def rival_text(row):
    text = row.failure or value_text(row.rival, row.unit)
    return f"{row.against}: {text}" if row.against else text


def target_text(row):
    if row.target is None:
        return "-"
    return ratio_text(row.target) if row.of == "ratio" else value_text(row.target, row.unit)


def label(row):
    return ", ".join(filter(None, [row.name, row.size, processes_text(row.processes)]))


def processes_text(number):
    """Two are not mentioned."""
    return f"{number} processes" if number not in (None, 2) else None


def column_of(line, row):
    """The column of the picture of sizes that a row of a line is in."""
    return row.size or "-" if line[1] == row.processes else f"{row.processes} processes"


def markdown(lines):
    rule = "|---|" + "---:|" * (len(lines[0]) - 1)
    head, *rows = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([head, rule, *rows])


# ---- a table


class Table:
    """A table of all machines that have it, as lists of rows by machine."""

    def __init__(self, identity, records):
        self.identity = identity
        self.sides = {name_of(one["machine"]): one["tables"][identity] for one in records.values() if identity in one["tables"]}
        if not self.sides:
            raise SystemExit(f"pages: no record has a table {identity}")
        self.rows = {side: record.rows_of(one) for side, one in self.sides.items()}
        self.rival = next(iter(self.sides.values()))["rival"]
        self.wide = list(dict.fromkeys(filter(None, map(self.line_of, itertools.chain(*self.rows.values())))))

    def line_of(self, row):
        """(name, processes) of the operation of several sizes that a row belongs to, (name, None) of one of several numbers of processes."""
        alike = [other for rows in self.rows.values() for other in rows if other.name == row.name and other.ratio is not None]
        if len({other.size for other in alike if other.processes == row.processes}) >= LEAST_SIZES:
            return row.name, row.processes
        return (row.name, None) if len({other.processes for other in alike if other.size == row.size}) >= LEAST_SIZES else None

    def of(self, name):
        """{machine: rows} of a line."""
        return {side: found for side, rows in self.rows.items() if (found := [row for row in rows if self.line_of(row) == name])}

    def narrow(self):
        """{(name, size, processes): {machine: row}} of the others."""
        found = {}
        for side, rows in self.rows.items():
            for row in rows:
                if self.line_of(row) is None:
                    found.setdefault((row.name, row.size, row.processes), {})[side] = row
        return found

    def text(self, page):
        parts = [self.head(side) for side in self.sides]
        if self.picture():
            target = os.path.relpath(picture_path(self.identity), page.parent)
            parts.append(f"![memspan next to {self.rival}, row by row]({target})")
        if self.wide:
            parts.append(markdown(self.wide_lines()))
        if narrow := self.narrow():
            parts.append(markdown(self.narrow_lines(narrow)))
        return "\n\n".join(parts + [f"- {side}: {said}" if len(self.sides) > 1 else said for side, one in self.sides.items() for said in one["remarks"]])

    def head(self, side):
        one, rows = self.sides[side], self.rows[side]
        dates, rounds = sorted({row.date for row in rows}), {row.rounds for row in rows if row.rounds}
        verdicts = [row.verdict() for row in rows if row.verdict()]
        versions = ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        said = [f"{side}, {' to '.join(sorted({dates[0], dates[-1]}))}", versions, f"{max(rounds)} rounds" if rounds else ""]
        met = f" {verdicts.count('met')} of {len(verdicts)} targets are met." if verdicts else ""
        return f"{'; '.join(filter(None, said))}.{met} `{one['command']}`"

    def wide_lines(self):
        """A line an operation; the picture has every size."""
        lines = [["operation", "median ratio of time", "best", "worst", "targets met"]]
        for name in self.wide:
            for side, rows in self.of(name).items():
                rows = [row for row in rows if row.ratio is not None]
                low, high = (choose(rows, key=lambda row: row.ratio) for choose in (min, max))
                at_low, at_high = (column_of(name, row) for row in (low, high))
                verdicts = [row.verdict() for row in rows if row.verdict()]
                lines.append([self.name_with(name, side), ratio_text(median(row.ratio for row in rows)), f"{ratio_text(low.ratio)}, {at_low}",
                              f"{marked(ratio_text(high.ratio), high, 'ratio')}, {at_high}",
                              f"{verdicts.count('met')}/{len(verdicts)}" if verdicts else "-"])
        return lines if any(line[-1] != "-" for line in lines[1:]) else [line[:-1] for line in lines]

    def name_with(self, name, side):
        return ", ".join(filter(None, [name[0], processes_text(name[1]), side if len(self.sides) > 1 else None]))

    def narrow_lines(self, narrow):
        if len(self.sides) > 1:
            sides = list(self.sides)[: COLUMNS - 1]
            return [["operation", *sides]] + [[label(next(iter(found.values()))), *(compact(found.get(side)) for side in sides)] for found in narrow.values()]
        rows = [row for found in narrow.values() for row in found.values()]
        columns = {"operation": label, "memspan": lambda row: marked(value_text(row.ours, row.unit), row, "ours")}
        if self.rival:
            columns |= {self.rival: rival_text, "ratio (quartiles)": ratio_cell}
        if any(row.target is not None for row in rows):
            columns["target ≤"] = target_text
        return [list(columns)] + [[column(row) for column in columns.values()] for row in rows]

    def picture(self):
        """The SVG, or None where there are too few ratios."""
        date = max(row.date for row in itertools.chain(*self.rows.values()))
        below = f"{' and '.join(self.sides)}, measured until {date}"
        if self.wide:
            return self.picture_of_sizes(f"time of memspan over that of {self.rival}, and memspan's time or bandwidth", f"{below}; framed: misses its target")
        bars = [chart.Bar(label(row) + (f", {side}" if len(self.sides) > 1 else ""), 1 / row.ratio)
                for side, rows in self.rows.items() for row in rows if row.ratio and row.unit not in record.SIZES]
        return chart.bars(f"how many times as fast as {self.rival} memspan is", below, bars) if len(bars) >= LEAST_SIZES else None

    def picture_of_sizes(self, title, below):
        found = [(self.name_with(name, side), {column_of(name, row): row for row in rows}) for name in self.wide for side, rows in self.of(name).items()]
        columns = sorted({column for _, rows in found for column in rows}, key=order_of_size)
        lines = [(name, [rows.get(column) and cell(rows[column]) for column in columns]) for name, rows in found]
        return chart.cells(title, below, columns, lines)


def cell(row):
    return chart.Cell(row.failure or ratio_text(row.ratio), value_text(row.ours, row.unit), row.ratio, row.verdict() == "missed")


def order_of_size(text):
    """By pieces, then bytes; a size without a number comes first."""
    found = re.match(r"(?:([\d,]+) × )?(\d+)(?: (B|KiB|MiB|GiB|processes))?(.*)", text)
    if not found:
        return 0, text, 0
    pieces, count, unit, more = found.groups()
    return (1 << 20 if unit == "processes" else int((pieces or "1").replace(",", ""))), more, int(count) << {"KiB": 10, "MiB": 20, "GiB": 30}.get(unit, 0)


def picture_path(identity):
    return PICTURES / f"measured_{identity.replace('-', '_')}.svg"


def table(identity, records, page):
    return Table(identity, records).text(page)


# ---- what is over all tables


def places():
    """{identity: page}"""
    found = {}
    for page in pages():
        for _, what, identity, _ in MARK.findall(page.read_text(encoding="utf-8")):
            if what == "table":
                found[identity] = page
    return found


def link(identity, text, from_page):
    page = places().get(identity)
    return f"[{text}]({os.path.relpath(page, from_page.parent)})" if page and page != from_page else text


def all_tables(records):
    """(machine, identity, table)"""
    for one in records.values():
        for identity, found in one["tables"].items():
            yield name_of(one["machine"]), identity, found


def with_ratios(records):
    """(machine, identity, table, rows that have a ratio) of the tables of times that have a rival"""
    for side, identity, one in all_tables(records):
        rows = [row for row in record.rows_of(one) if row.ratio is not None]
        if one["rival"] and any(row.unit not in record.SIZES for row in rows):
            yield side, identity, one, rows


def median_ratio(rows):
    """None if half the rows are far below the others."""
    ratios = sorted(row.ratio for row in rows)
    low, high = ratios[(len(ratios) - 1) // 2], ratios[len(ratios) // 2]
    return None if high > FAR_APART * low else median(ratios)


def median_text(rows):
    """The range if there is no median."""
    middle, ratios = median_ratio(rows), [row.ratio for row in rows]
    return f"{ratio_text(min(ratios))} to {ratio_text(max(ratios))}" if middle is None else ratio_text(middle)


def summary(_, records, page):
    """A line a table, a column a machine: the median ratio, and in how many rows memspan is faster."""
    sides = list(dict.fromkeys(side for side, *_ in with_ratios(records)))[: COLUMNS - 1]
    found = {}
    for side, identity, one, rows in with_ratios(records):
        faster = sum(row.ratio < 1 for row in rows)
        found.setdefault((identity, one["title"]), {})[side] = f"{median_text(rows)} ({faster}/{len(rows)})"
    lines = [["compared with", *sides]]
    lines += [[link(identity, title, page), *(cells.get(side, "-") for side in sides)] for (identity, title), cells in found.items()]
    target = os.path.relpath(picture_path("summary"), page.parent)
    return f"![How many times as fast as each rival memspan is, in the median row]({target})\n\n" + markdown(lines)


def picture_of_summary(records):
    middles = [(f"{one['title']}, {side}", median_ratio(rows)) for side, _, one, rows in with_ratios(records)]
    bars = [chart.Bar(name, 1 / middle) for name, middle in middles if middle is not None]
    return chart.bars("how many times as fast as each rival memspan is", "median row of each table", bars)


def misses(_, records, __):
    """A table a machine, of which a line is an operation, with all that misses of it."""
    parts = []
    for side, tables in itertools.groupby(all_tables(records), lambda entry: entry[0]):
        lines = [["operation", "compared with", "ratio of time, or time", "target ≤"]]
        for _, _, one in tables:
            lines += lines_of_misses(one)
        parts.append(f"{side}:\n\n{markdown(lines)}")
    return "\n\n".join(parts)


def lines_of_misses(one):
    found = {}
    for row in record.rows_of(one):
        if row.verdict() in ("missed", "level"):
            found.setdefault(row.name, []).append(row)
    for name, rows in found.items():
        rival = "-" if one["rival"] is None or "next to" in name else one["rival"]
        rivals = ", ".join(dict.fromkeys(row.against or rival for row in rows))
        yield [name, rivals, "; ".join(map(measured_text, rows)), ", ".join(dict.fromkeys(map(target_text, rows)))]


def measured_text(row):
    """In italics, where the run could not say."""
    value = ratio_text(row.ratio) if row.of == "ratio" else value_text(row.ours, row.unit)
    if value == target_text(row):
        value = f"{row.ratio:.3f}" if row.of == "ratio" else f"{row.ours:.4g}"
    value = f"*{value}*" if row.verdict() == "level" else value
    where = ", ".join(filter(None, [row.size, processes_text(row.processes)]))
    return f"{where}: {value}" if where else value


def machines(_, records, page):
    lines = [["machine", "cores, caches", "kernel", "pages", "record"]]
    for name, one in records.items():
        found = one["machine"]
        huge = ", ".join(f"{kind} {mode}" for kind, mode in found["huge_pages"].items())
        pages_text = "; ".join(filter(None, [f"{found['page_size'] // 1024} KiB", huge]))
        target = os.path.relpath(record.FOLDER / f"{name}.json", page.parent)
        lines.append([found["processor"], ", ".join([f"{found['cores']} cores", *found["caches"]]), found["kernel"], pages_text, f"[{name}.json]({target})"])
    return markdown(lines)


def of_two_processes(records):
    """(machine, version of OSHMEM, date, bars) of the machine that was compared with OSHMEM last: every row of two processes that has a
    ratio, in the table's order, whatever the results are."""
    compared = [one for one in records.values() if "oshmem" in one["tables"]]
    one = max(compared, key=lambda one: max(row.date for row in record.rows_of(one["tables"]["oshmem"])))
    rows = [row for row in record.rows_of(one["tables"]["oshmem"]) if row.processes == 2 and row.ratio]
    bars = [chart.Bar(", ".join(filter(None, [row.name, row.size])), 1 / row.ratio) for row in rows]
    where = f"{one['machine']['processor']}, {one['machine']['cores']} cores; Open MPI's OSHMEM {one['tables']['oshmem']['versions']['OSHMEM']}"
    return f"{where}; measured on {max(row.date for row in rows)}", bars


def sentence(bars):
    """The chart for readers that do not see it."""
    faster = sum(bar.times_as_fast >= 1 for bar in bars)
    middle = sorted(bar.times_as_fast for bar in bars)[len(bars) // 2]
    slower = [f"{bar.label} ({100 / bar.times_as_fast - 100:.0f} %)" for bar in bars if bar.times_as_fast < 0.995]
    text = f"memspan is faster than OSHMEM in {faster} of {len(bars)} rows with two processes, and {middle:.1f} times as fast in the median row"
    return text + (f"; OSHMEM is faster in {'; '.join(slower)}" if slower else "")


def picture(_, records, page):
    below, bars = of_two_processes(records)
    target = os.path.relpath(COMPARE, page.parent)
    return f"![How many times as fast as OSHMEM memspan is, row by row]({target})\n\n{sentence(bars)} ({below})."


WRITERS = {"table": table, "summary": summary, "misses": misses, "machines": machines, "picture": picture}


def written(page, records):
    return MARK.sub(lambda found: f"{found[1]}{WRITERS[found[2]](found[3], records, page)}\n{found[4]}", page.read_text(encoding="utf-8"))


def pictures(records):
    """{path: SVG}"""
    below, bars = of_two_processes(records)
    found = {COMPARE: chart.bars("memspan and OSHMEM, two processes of one host: how many times as fast memspan is", below, bars),
             picture_path("summary"): picture_of_summary(records)}
    tables = {identity: Table(identity, records).picture() for _, identity, _ in all_tables(records)}
    return found | {picture_path(identity): svg for identity, svg in tables.items() if svg}


def changes(records):
    """{path: text, or None for one that no table has any more} of the files that are not as the records say."""
    texts = {page: written(page, records) for page in pages()} | pictures(records)
    texts |= {path: None for path in PICTURES.glob("measured_*.svg") if path not in texts}
    return {path: text for path, text in texts.items() if text is None or not path.exists() or path.read_text(encoding="utf-8") != text}


def missing(records):
    """Tables of the records that no page shows."""
    return sorted({identity for _, identity, _ in all_tables(records)} - set(places()))


def main(arguments):
    parser = argparse.ArgumentParser(description="Writes the pages of measurements from the records.")
    parser.add_argument("--check", action="store_true", help="name the pages that are not current, and change nothing")
    parser.add_argument("--try", dest="trial", type=Path, metavar="FILE", help="make all pages with this record, and change nothing")
    given = parser.parse_args(arguments)
    records = record.records()
    if given.trial:
        records[given.trial.stem] = json.loads(given.trial.read_text(encoding="utf-8"))
    changed, lost = changes(dict(sorted(records.items()))), missing(records)
    for identity in lost:
        print(f"pages: no page has the table {identity}", file=sys.stderr)
    for path, text in changed.items() if not given.trial else ():
        if given.check:
            print(f"pages: {path.relative_to(record.ROOT)} is not that of the records (python3 benchmarks/pages.py)", file=sys.stderr)
        elif text is None:
            path.unlink()
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if lost or (given.check and changed) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
