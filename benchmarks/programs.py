#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds to the record the figures that programs of the build print: they alternate with the bare way themselves.

    python3 benchmarks/programs.py --build build [--only links,kernels,reductions] [--short] [--record FILE]

Each program runs as its row of PROGRAMS says; --short passes its short form, a smoke test. The exit code is 1 when one failed.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "compare")]

import jobs  # noqa: E402
import record  # noqa: E402

LIMIT_S = 600
# Of memspan's time over the bare socket's.
SOCKET = {"put of 1 MiB": 1 / 0.8, "get of 8 bytes": 2.5, "barrier": 2.5}
# What kernels_bench prints: the name in the record, its unit, the most that it may be.
KERNELS = {
    "launch + synchronize, 1 block, us": ("launch + synchronize, 1 block", "us", 5),
    "launch + synchronize, 4 blocks, us": ("launch + synchronize, 4 blocks", "us", None),
    "launch until the kernel runs, nobody waiting for the stream, us": ("launch until the kernel runs", "us", None),
    "put of 8 bytes on a stream + synchronize, us": ("put of 8 bytes on a stream + synchronize", "us", 3),
    "put of 64 MiB on a stream / memcpy": ("put of 64 MiB on a stream, over memcpy", "", 1),
    "barrier of all PEs in a kernel of 4 blocks, us": ("barrier of all PEs in a kernel of 4 blocks", "us", 20),
    "the same / the host call": ("put of 8 bytes in a kernel, over the host call", "", 1.2),
}


def links(printed, condition="idle, Unix"):
    rows = []
    for name, ours, bare, unit, ratio in re.findall(r"^(\S.*?) +([\d.]+) +([\d.]+) (us|GB/s) +([\d.]+)$", printed, re.M):
        rounds = int(re.search(r"\((\d+) rounds", printed)[1])
        factor, unit, ratio = (1e3, "MB/s", 1 / float(ratio)) if unit == "GB/s" else (1, "us", float(ratio))
        rows.append(record.Row(name, unit, condition, ours=float(ours) * factor, rival=float(bare) * factor, ratio=ratio, target=SOCKET.get(name), rounds=rounds))
    return rows


def links_over_tcp(printed):
    return links(printed, "idle, TCP")


def barrier(printed):
    found = re.search(r"one way ([\d.]+) us, barrier of 2 hosts ([\d.]+) us, ratio ([\d.]+)", printed)
    if not found:
        return []
    bare, ours, ratio = map(float, found.groups())
    return [record.Row("barrier", "us", "idle, Unix", ours=ours, rival=bare, ratio=ratio, target=SOCKET["barrier"])]


def kernels(printed):
    values = dict(re.findall(r"^\| (.*?) \| ([\d.e+]+) \|", printed, re.M))
    return [record.Row(name, unit, ours=float(values[text]), target=target, of="ours") for text, (name, unit, target) in KERNELS.items() if text in values]


def reductions(printed):
    """Narrow types next to the sum of float32 with the widest vectors, which is the first of its size."""
    rows, base = [], {}
    for size, sources, kind, way, rate in re.findall(r"^ *(\d+) KiB +(\d) sources +(\S+) +(\S.*?) +([\d.]+) GB/s", printed, re.M):
        if kind == "float32":
            base.setdefault((size, sources), float(rate))
        elif "float" in kind and way != "baseline" and float(rate):
            text = f"{int(size) // 1024} MiB" if int(size) >= 1024 else f"{size} KiB"
            name = f"{kind}, {'AVX-512 BF16' if way == 'with BF16' else way}"
            ours, bare = float(rate) * 1e3, base[size, sources] * 1e3
            rows.append(record.Row(name, "MB/s", f"{text}, {sources} sources", ours=ours, rival=bare, ratio=bare / ours))
    return rows


# Table: title, rival, [(command in the build, its short form, what reads it)].
PROGRAMS = {
    "links": ("a bare socket", "bare socket", [
        ("bin/links_bench", "bin/links_bench --short", links),
        ("bin/links_bench --tcp", "bin/links_bench --tcp --short", links_over_tcp),
        ("bin/oshrun -n 2 --simulate-hosts 2 bin/hosts_barrier", "bin/oshrun -n 2 --simulate-hosts 2 bin/hosts_barrier 1 10", barrier),
    ]),
    "kernels": ("kernels on the host device", None, [("bin/oshrun -n 2 bin/kernels_bench", "bin/oshrun -n 2 bin/kernels_bench --short", kernels)]),
    "reductions": ("float32's sums, for narrow types", "float32's sum", [("bin/reductions_bench --rounds 3", "bin/reductions_bench --short", reductions)]),
}


def measure(build, identity, is_short):
    """(rows, failures)"""
    rows, failures = [], []
    for command, short, read in PROGRAMS[identity][2]:
        words = [f"{build}/{word}" if word.startswith("bin/") else word for word in (short if is_short else command).split()]
        done = jobs.run(words, {"SHMEM_SYMMETRIC_SIZE": "256M"}, LIMIT_S)
        found = read(done.output)
        rows += found
        if done.failure or not found:
            failures.append(f"{command}: {done.failure or 'it printed no figures'}")
    return rows, failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=record.ROOT / "build")
    parser.add_argument("--only", default=",".join(PROGRAMS), help=f"of {', '.join(PROGRAMS)}")
    parser.add_argument("--short", action="store_true")
    record.option(parser)
    chosen = parser.parse_args()
    failed = []
    for identity in chosen.only.split(","):
        busy = record.busy_cores()
        rows, failures = measure(chosen.build.resolve(), identity, chosen.short)
        failed += failures
        for row in rows:
            print(f"{row.name}, {row.size or ''}: {row.ours:.4g} {row.unit}", f"ratio {row.ratio:.3f}" if row.ratio else "", sep="  ")
        if chosen.record and rows:
            title, rival, programs = PROGRAMS[identity]
            command = f"python3 benchmarks/programs.py --only {identity}"
            record.add(chosen.record, identity, record.table(title, command, rival, {"memspan": jobs.memspan_version()}, rows, failures, busy))
    for failure in failed:
        print(f"programs: {failure}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
