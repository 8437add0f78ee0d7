#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each promise with the command that shows it and its last result: the table of docs/promises.md.

    promises.py                             checks: each promise of the pages has an entry, and the page is current
    promises.py --run [--build DIR]         runs the commands (about ten minutes) and writes the results
    promises.py --junit FILE --rows FILE    takes results from reports of ctest and tests/failure/run.sh instead
    promises.py --log FILE                  the same from what scripts/test.sh PART printed, of one part

The list is docs/promises.toml. A promise that was not run keeps the result that it had, with its date and commit. Needs
a build with tests.
"""

import argparse
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIST, PAGE = ROOT / "docs" / "promises.toml", ROOT / "docs" / "promises.md"
BEGIN, END = "<!-- promises:begin -->", "<!-- promises:end -->"
COUNT = re.compile(r"^\d+ of the \d+ promises [^\n]*\.$", re.M)
KINDS = ("ctest", "rows", "part", "measured", "by_hand")
TABLES = ("Promises", "Pools, spaces and transfers", "Between hosts")


def promises() -> list[dict]:
    return tomllib.loads(LIST.read_text(encoding="utf-8"))["promise"]


def rows_of_reliability() -> list[tuple[str, str]]:
    """(section, row) of the tables of promises in docs/reliability.md."""
    out, section = [], ""
    for line in (ROOT / "docs/reliability.md").read_text(encoding="utf-8").split("\n"):
        if line.startswith("#"):
            section = line.lstrip("# ")
        elif section in TABLES and line.startswith("|") and not re.match(r"\|(-|:| row | when )", line):
            out.append((section, line))
    return out


def command_of(promise: dict) -> str:
    if "ctest" in promise:
        return f"ctest --test-dir build -R '{promise['ctest']}'"
    if "rows" in promise:
        return f"bash tests/failure/run.sh {promise['rows']}"
    if "part" in promise:
        return f"bash scripts/test.sh {promise['part']}"
    return promise.get("measured") or promise["by_hand"]


def problems() -> list[str]:
    known = promises()
    out = [
        f"docs/reliability.md: no promise of docs/promises.toml begins this row of \"{section}\": {row[:100]}"
        for section, row in rows_of_reliability()
        if not any(p["where"] == section and p["text"] in row for p in known)
    ]
    rows = rows_of_reliability()
    for p in known:
        if p["where"].endswith(".md"):
            if p["text"] not in (ROOT / p["where"]).read_text(encoding="utf-8"):
                out.append(f"docs/promises.toml: {p['where']} does not say: {p['text']}")
            if "](" in p["text"] and "/" not in p["where"]:
                out.append(f"docs/promises.toml: {p['text']}: a link of {p['where']} leads nowhere in docs/; quote words without one")
        elif not any(p["where"] == section and p["text"] in row for section, row in rows):
            out.append(f"docs/promises.toml: docs/reliability.md has no such row in \"{p['where']}\": {p['text']}")
        if sum(kind in p for kind in KINDS) != 1:
            out.append(f"docs/promises.toml: {p['text']}: one of {', '.join(KINDS)} is needed")
    count = COUNT.search(PAGE.read_text(encoding="utf-8"))
    if [cells[:3] for cells in kept()] != [cells_of(p)[:3] for p in known] or count is None or count[0] != count_of(kept()):
        out.append("docs/promises.md is not current: python3 tools/dev/promises.py --write")
    return out


def kept() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    lines = text[text.index(BEGIN) : text.index(END)].split("\n")[3:-1]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def cells_of(promise: dict) -> list[str]:
    command = command_of(promise).replace("|", "\\|")
    result = f"[figures]({promise['page']})" if "page" in promise else promise.get("result", "not run")
    text = promise["text"].rstrip(" |").replace("|", "\\|")
    if not promise["where"].endswith(".md"):  # else it is what the page has
        text = text[:1].upper() + text[1:]
    return [text, promise["where"], f"`{command}`", result, ""]


def count_of(rows: list[list[str]]) -> str:
    """The line at the top of the page."""
    figures = sum(cells[3].startswith("[figures]") for cells in rows)
    words = [cells[3].partition(":")[0] for cells in rows]
    not_run = sum(word.startswith("not run") for word in words)
    by_hand = words.count("by hand")
    ran = len(rows) - figures - not_run - by_hand
    shown_of_them = f"{words.count('shown')} are shown"
    for word, text in (("shown in part", "in part"), ("**not shown**", "not shown")):
        shown_of_them += f", {words.count(word)} {text}" if word in words else ""
    return (
        f"{ran} of the {len(rows)} promises below have been run here ({shown_of_them}), {figures} are figures of another page, "
        f"{f'{by_hand} were tried by hand, ' if by_hand else ''}"
        f"and {not_run} have no result here yet."
    )


def write(results: dict[str, tuple[str, str]]) -> None:
    """results: command -> (result, when)."""
    before = {tuple(cells[:3]): cells for cells in kept()}
    measured = of_page()
    lines = ["| promise | of | command | last result | date, commit |", "|---|---|---|---|---|"]
    rows = []
    for promise in promises():
        cells = cells_of(promise)
        cells = before.get(tuple(cells[:3]), cells)
        if command_of(promise) in results:
            cells[3:] = results[command_of(promise)]
        elif promise.get("rows") in measured and not cells[4]:
            cells[3:] = measured[promise["rows"]]
        rows.append(cells)
        lines.append("| " + " | ".join(cells) + " |")
    text = COUNT.sub(lambda _: count_of(rows), PAGE.read_text(encoding="utf-8"), count=1)
    PAGE.write_text(text[: text.index(BEGIN)] + BEGIN + "\n" + "\n".join(lines) + "\n" + text[text.index(END) :], encoding="utf-8")


def of_junit(path: pathlib.Path) -> dict[str, str]:
    """Test -> passed, failed or skipped."""
    out = {}
    for case in tree.parse(path).getroot().iter("testcase"):
        status = {"run": "passed", "fail": "failed"}.get(case.get("status", ""), "skipped")
        out[case.get("name", "")] = status
    return out


def shown(tests: dict[str, str], pattern: str) -> str | None:
    found = [status for name, status in tests.items() if re.search(pattern, name)]
    if not found:
        return None
    counts = {status: found.count(status) for status in ("passed", "failed", "skipped") if status in found}
    if "failed" in counts:
        word = "**not shown**"
    elif set(counts) == {"passed"}:
        word = "shown"
    else:
        word = "shown in part" if "passed" in counts else "not run here"
    return f"{word}: " + ", ".join(f"{n} {status}" for status, n in counts.items())


def of_log(text: str) -> tuple[str, str] | None:
    """(part, result) of the last lines of scripts/test.sh that ran one part."""
    parts = re.findall(r"^(\S+) +\d+$", text[text.rfind("\npart ") :], re.M)
    counts = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    if parts[1:] != ["all"] or not counts:
        return None
    passed, failed, skipped = map(int, counts[-1])
    result = ", ".join(f"{n} {word}" for n, word in ((passed, "passed"), (failed, "failed"), (skipped, "skipped")) if n)
    return parts[0], f"{'**not shown**' if failed else 'shown in part' if skipped else 'shown'}: {result}"


def of_row(result: dict) -> str:
    if result["skipped"]:
        return f"not run: {result['skipped']}"
    if result["failures"]:
        return f"**not shown**: {result['failures']} of {result['n']} rounds failed"
    longest = f", longest {result['max_ms']:.1f} ms" if result.get("max_ms") is not None else ""
    return f"shown: {result['n']} rounds{longest}"


def of_page() -> dict[str, tuple[str, str]]:
    """The rows that stand in docs/reliability.md, as they were measured: row -> (result, when)."""
    text = (ROOT / "docs/reliability.md").read_text(encoding="utf-8")
    head, table = text[: text.index("<!-- rows:begin -->")], text.split("<!-- rows:begin -->")[1].split("<!-- rows:end -->")[0]
    when = re.findall(r"\d{4}-\d{2}-\d{2}", head.split("## Results")[1])[-1]
    out = {}
    for line in table.strip().split("\n")[2:]:
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) > 6:
            longest = f", longest {cells[6]} ms" if cells[6] else ""
            out[cells[0]] = (f"{cells[2]}: {cells[3]} rounds{longest}", when)
    return out


def run(build: pathlib.Path, folder: pathlib.Path) -> tuple[pathlib.Path, pathlib.Path]:
    junit, rows = folder / "ctest.xml", folder / "rows.jsonl"
    ctest = ["ctest", "--test-dir", str(build)]
    listed = json.loads(subprocess.run([*ctest, "--show-only=json-v1"], capture_output=True, text=True, check=True).stdout)
    patterns = [p["ctest"] for p in promises() if "ctest" in p]
    names = [t["name"] for t in listed["tests"] if any(re.search(pattern, t["name"]) for pattern in patterns)]
    # By their names, since one of ctest's expressions has a few groups at most.
    exactly = "|".join(f"^{re.escape(name)}$" for name in names)
    jobs = str(os.cpu_count() or 1)
    subprocess.run([*ctest, "--output-junit", str(junit), "-j", jobs, "-R", exactly], check=False)
    wanted = [p["rows"] for p in promises() if "rows" in p]
    subprocess.run(["bash", "tests/failure/run.sh", "--build", str(build), "--out", str(rows), *wanted], cwd=ROOT, check=False)
    return junit, rows


def commit() -> str:
    done = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "no commit"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--write", action="store_true", help="writes the table, with the results that it has")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", metavar="DIR")
    parser.add_argument("--junit", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--rows", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--log", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--commit", default=commit(), help="that the results are of (the last one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.run:
            given.junit, given.rows = run(given.build.resolve(), pathlib.Path(folder))
        tests = of_junit(given.junit) if given.junit else {}
        lines = given.rows.read_text(encoding="utf-8").splitlines() if given.rows else []
    log = of_log(given.log.read_text(encoding="utf-8", errors="replace")) if given.log else None
    if given.log and log is None:
        parser.error(f"--log {given.log}: it does not end as scripts/test.sh with one part does")
    rows = {result["row"]: result for result in map(json.loads, filter(None, lines))}
    when = f"{datetime.date.today().isoformat()}, {given.commit}"
    results = {}
    for promise in promises():
        text = shown(tests, promise["ctest"]) if "ctest" in promise else None
        if promise.get("rows") in rows:
            text = of_row(rows[promise["rows"]])
        if log is not None and promise.get("part", "").split(" ")[-1] == log[0]:
            text = log[1]
        if text is not None:
            results[command_of(promise)] = (text, when)
    if given.write or results:
        write(results)
    wrong = problems()
    print("\n".join(wrong), end="\n" if wrong else "")
    failed = [text for text, _ in results.values() if "not shown" in text]
    print(f"promises: {len(promises())} promises, {len(results)} commands with a new result, {len(failed)} not shown, {len(wrong)} wrong")
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
