# SPDX-License-Identifier: Apache-2.0
"""The record of measurements: one JSON file a machine, to which each benchmark adds its tables.

    {"machine": {"family", "processor", "cores", "caches", "kernel", "page_size", "huge_pages"},
     "tables": {ID: {"title", "command", "rival", "versions", "rows", "remarks"}}}

A row has the keys of `Row`, without those that are null. A ratio is memspan's time over the rival's, made within a
round, so that below 1 memspan is faster, also for bandwidths. Pages are made from the records by pages.py.
"""

import argparse
import dataclasses
import datetime
import json
import os
import platform
import re
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "measurements"
RATES = ("MB/s", "GB/s", "Mop/s")
SIZES = ("KiB", "MiB")
MOST_BUSY = 0.3  # cores with other work; a machine that does nothing else has its services
LOOK_S = 0.5
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_HUGE = Path("/sys/kernel/mm/transparent_hugepage")


@dataclass
class Row:
    """`target` is the most that `ratio` may be, or, in a row without a ratio's target, that `ours` may be (`of`)."""

    name: str
    unit: str = "us"
    size: str | None = None  # bytes, and pieces where there are several
    processes: int | None = None
    ours: float | None = None
    rival: float | None = None
    ratio: float | None = None
    lower: float | None = None
    upper: float | None = None
    target: float | None = None
    of: str = "ratio"
    rounds: int | None = None
    against: str | None = None  # the rival of this row, where it is not that of the table
    failure: str | None = None  # why a side has no figure
    date: str | None = None
    commit: str | None = None

    def verdict(self):
        """`level` is a figure above the target whose lower quartile is not; None without a target or a figure."""
        value = getattr(self, self.of)
        if self.target is None or value is None:
            return None
        if value <= self.target:
            return "met"
        return "level" if self.lower is not None and self.lower <= self.target and self.of == "ratio" else "missed"


def of_rounds(name, unit, ours, rival, **more):
    """A row of the two sides' values of each round; a round in which a side has none (None) has no ratio."""
    mine, theirs = ([value for value in side if value is not None] for side in (ours, rival))
    pairs = [(a, b) for a, b in zip(ours, rival) if a and b]
    ratios = [b / a if unit in RATES else a / b for a, b in pairs]
    return Row(name, unit, ours=median(mine) if mine else None, rival=median(theirs) if theirs else None,
               **of_ratios(ratios), rounds=len(ours), **more)


def of_ratios(ratios):
    """Their median and quartiles, as keys of a row."""
    if not ratios:
        return {}
    low, middle, high = quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"ratio": middle, "lower": low, "upper": high}


def table(title, command, rival, versions, rows, remarks=(), busy=0):
    """`versions`: {name: version} of memspan and of each rival. The rows get today's date and the commit. `busy` is how many
    cores had other work before the run; more than few are named."""
    stamp = {"date": datetime.date.today().isoformat(), "commit": commit()}
    made = [dataclasses.replace(row, **{key: getattr(row, key) or value for key, value in stamp.items()}) for row in rows]
    return {"title": title, "command": command, "rival": rival, "versions": versions, "rows": [_short(row) for row in made],
            "remarks": [*remarks, *([f"Other work took {busy:.1f} cores when it began."] if busy > MOST_BUSY else [])]}


def rows_of(one):
    return [Row(**row) for row in one["rows"]]


def _short(row):
    found = {key: value for key, value in dataclasses.asdict(row).items() if value is not None and (key, value) != ("of", "ratio")}
    return {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in found.items()}


def add(path, identity, one):
    """Puts a table into the record, in the place of the one with its name. A run that measured some rows leaves the others."""
    path = Path(path)
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"tables": {}}
    record["machine"] = machine()
    old = record["tables"].get(identity, {"rows": []})
    new = {_key(row): row for row in one["rows"]}
    kept = [new.pop(_key(row), row) for row in old["rows"]]
    record["tables"][identity] = one | {"rows": [*kept, *new.values()]}
    write(path, record)


def write(path, record):
    """One line a row, so that a difference shows rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(record, indent=1, ensure_ascii=False)
    text = re.sub(r"\{\n +\"name\": [^{}]*\}", lambda found: re.sub(r"\n +", " ", found[0]).replace("{ ", "{").replace(" }", "}"), text)
    path.with_suffix(".new").write_text(text + "\n", encoding="utf-8")
    path.with_suffix(".new").replace(path)


def _key(row):
    return row["name"], row.get("size"), row.get("processes")


def records():
    """Those of all machines, by file name."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))}


# ---- of the machine and the source tree


def machine():
    model = next((line.split(":", 1)[1] for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), "")
    processor = " ".join(model.split()) or platform.machine()
    return {
        "family": family(processor),
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "caches": caches(),
        "kernel": f"Linux {platform.release()}",
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "huge_pages": huge_pages(),
    }


def family(processor):
    """The file's name: maker and kind of the processor, as amd-epyc."""
    words = re.sub(r"\([^)]*\)|\b(processor|cpu|core)\b|@.*", " ", processor.lower())
    return "-".join(re.findall(r"[a-z][a-z0-9]*", words)[:2]) or "unknown"


def caches():
    """Of one core, as "L1d 48 KiB"; shared ones once."""
    found = []
    for index in sorted(_CACHES.glob("index*")):
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            kib = int(size.rstrip("KM")) << (10 if size.endswith("M") else 0)
            found.append(f"L{level}{'d' if kind == 'Data' else ''} {f'{kib >> 10} MiB' if kib % 1024 == 0 else f'{kib} KiB'}")
    return found


def huge_pages():
    """The mode of transparent huge pages, of private and of shared memory."""
    modes = {}
    for name in ("enabled", "shmem_enabled"):
        path = _HUGE / name
        chosen = re.search(r"\[(\w+)\]", path.read_text()) if path.exists() else None
        modes[name] = chosen[1] if chosen else "absent"
    return modes


def busy_cores():
    """How many cores work now, in a look of half a second: of the machine before a run. The load average would have the run before."""
    def ticks():
        values = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(values), values[3] + values[4]

    before, idle_before = ticks()
    time.sleep(LOOK_S)
    after, idle_after = ticks()
    share = 1 - (idle_after - idle_before) / max(after - before, 1)
    return share * (os.cpu_count() or 1)


def commit():
    """Of the source tree; with "+" if it has changes besides records and pages."""
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True, check=False).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs", ":!README.md")
    return (git("rev-parse", "--short=9", "HEAD") or "unknown") + ("+" if changed else "")


def default_path():
    return FOLDER / f"{machine()['family']}.json"


def option(parser):
    parser.add_argument("--record", type=Path, metavar="FILE", nargs="?", const=default_path(),
                        help=f"add the tables to this machine's record (default: {os.path.relpath(default_path(), ROOT)})")


def main():
    parser = argparse.ArgumentParser(description="Prints the file of this machine's record.")
    parser.parse_args()
    print(default_path())


if __name__ == "__main__":
    main()
