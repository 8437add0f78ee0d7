#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memspan next to DeepSpeed's all-reduce of CPU tensors and next to NIXL's and Mooncake's transfers, in the same processes.

    benchmarks/install_rivals.sh build/rivals dist/memspan-*.whl
    build/rivals/bin/python benchmarks/python/rivals.py [--only allreduce,nixl,mooncake] [--rounds 9] [--record FILE]

All-reduces: of tensors of float32 and bfloat16, in place, through c10d's backend memspan, and through the
operator torch.ops.memspan.all_reduce_ where the wheel has it; the rival is torch.ops.deepspeed.inference_all_reduce_
(deepspeed_op.py), bare is a copy of as many bytes. Transfers: pieces of memory that both have registered, scattered,
written to and read from another process of this host; NIXL has its own UCX, with the transports that it chooses,
Mooncake its TCP. Who goes first changes with every round; a batch takes as long as its slowest process does. What takes
long has fewer rounds, and a row that does not end in time says so (benchmarks/bounded.py). The exit code is 1
when something failed (with --strict: or a row was missed).
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compare")]

import alternating  # noqa: E402
import bounded  # noqa: E402
import moves  # noqa: E402
import page  # noqa: E402
import record  # noqa: E402
import reductions  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import workers  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64, KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB)
TYPES = ("float32", "bfloat16")
PROCESSES = (2, 4)
PARTS = {"allreduce": "DeepSpeed", "nixl": "NIXL", "mooncake": "Mooncake"}
ELSEWHERE = ("mooncake", "library")  # is in the table of memfabric/memfabric.py
LIMIT_S = 1200  # of a process, whatever its parent does


# ---- in the processes


def kind_of(part):
    return reductions if part == "allreduce" else moves


def work_as(given):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    signal.alarm(LIMIT_S)
    kind = kind_of(given.worker)
    todo = kind.rows(given)
    given.pace = alternating.Pace(given.least * 1e-3, given.rounds, given.budget)
    if given.alone:
        todo = [row_of(given.alone)]
    elif given.after:
        todo = todo[todo.index(row_of(given.after)) + 1 :]
    is_right = kind.work(given, todo, LIMIT_S, rank, world)
    if rank == 0:
        print("end", flush=True)
    os._exit(0 if is_right else 1)  # the rivals' own ends take seconds, or crash


def row_of(text):
    name, size = text.split("/")
    return name, int(size)


# ---- in the parent


def read(lines):
    """{(name, size): {side: [us of each round]}}, and the lines that tell of an error."""
    found, errors = {}, []
    for line in lines:
        words = line.split()
        if len(words) > 4 and words[0] == "row":
            found.setdefault((words[1], int(words[2])), {})[words[3]] = [float(value) for value in words[4:]]
        elif line.startswith("# ERROR "):
            errors.append(line.removeprefix("# ERROR "))
    return found, errors


def result(label, size, processes, sides, ours, rival, given, failed):
    """A row of the table; `failed` says why it has no comparison."""
    columns = [sides.get(side, [None] * len(sides[ours])) for side in (ours, "rival", "bare")]
    rounds = len(columns[0])
    if rounds < given.rounds and not failed:
        label += f" ({rounds} rounds)"
    row = rows.Row("", label, label, size, rows.LEVEL, "bare" if "bare" in sides else "")
    failures = {rival: [failed.both] * rounds} if failed else {}
    return rows.Result(row, "us", [rows.Sample(*values) for values in zip(*columns)], processes, failures)


def measure(part, world, given, own):
    """The results of a table, and what failed; `own` are options that it has besides those of all."""
    ports = []

    def start(after, alone):
        words = [*sys.argv, "--worker", part]
        words += [word for name, values in own.items() for word in (f"--{name}", ",".join(map(str, values)))]
        words += ["--after", "/".join(map(str, after))] if after else []
        words += ["--alone", "/".join(map(str, alone))] if alone else []
        ports.append(workers.free_port())  # DeepSpeed's segments have its name, and stay
        variables = {"NIXL_LOG_LEVEL": "ERROR", "MC_LOG_LEVEL": "error", "PYTHONDONTWRITEBYTECODE": "1"}
        return workers.start(words, world, MASTER_PORT=str(ports[-1]), **variables)

    try:
        measured = bounded.measure(start, given.limit)
    finally:
        for port in ports:
            for left in Path("/dev/shm").glob(f"*_127.0.0.1_{port}_*"):
                left.unlink()
    found, errors = read(measured.lines)
    errors += measured.errors
    results = []
    for (name, size), failed in measured.failed.items():
        errors += [f"{name}, {size} bytes, memspan alone: {failed.alone}"] if failed.alone else []
    for name, size in kind_of(part).rows(given):
        sides = found.get((name, size), {})
        for ours, label in labels(part, name):
            if ours in sides:
                results.append(result(label, size, world, sides, ours, PARTS[part], given, measured.failed.get((name, size))))
    return results, [f"{PARTS[part]}, {world} processes: {error}" for error in errors]


def labels(part, name):
    """Sides of memspan, and what their rows are called."""
    if part == "allreduce":
        return [("c10d", f"all-reduce, {name}"), ("operator", f"all-reduce by the operator, {name}")]
    return [("memspan", moves.label(name))]


def tables(given):
    """(part, how many processes, options of its own)"""
    for part in given.only:
        if part == "allreduce":
            for world in given.processes:
                yield part, world, {"only": (part,), "processes": (world,)}
        else:
            for memory in (memory for memory in given.memory if (part, memory) != ELSEWHERE):
                yield part, 2, {"only": (part,), "memory": (memory,)}


TABLES = {  # of the record: identity, title
    "allreduce": ("deepspeed", "DeepSpeed's all-reduce"),
    "nixl": ("nixl", "NIXL over UCX"),
    "mooncake": ("mooncake", "Mooncake over TCP"),
}


def row_of_record(part, result):
    """Under the name of the operation, without what the row's size says."""
    label = result.row.figure.partition(" (")[0]
    if part == "allreduce":
        return report.row_of(result, label.replace("all-reduce by the operator", "operator").replace("all-reduce", "torch.distributed"))
    memory, way, work = label.split(", ", 2)
    count = {"one": "1"}.get(work, work.split()[0])
    size = "cache block" if work.startswith("cache block") else f"{count} × {report.size_text(result.row.size)}"
    return report.row_of(result, f"{way}, {memory.removeprefix('the ')}", size=size, processes=None)


def versions(part):
    import torch
    from importlib.metadata import version

    if part == "allreduce":
        source = next(Path(sys.prefix).glob("deepspeed/deepspeed-*.tar.gz"), Path("deepspeed-unknown.tar.gz"))
        found = source.name.removeprefix("deepspeed-").removesuffix(".tar.gz")
    else:
        found = version({"nixl": "nixl-cu12", "mooncake": "mooncake-transfer-engine-non-cuda"}[part])
    return {"memspan": version("memspan"), "PyTorch": torch.__version__.partition("+")[0], PARTS[part]: found}


def options():
    def list_of(convert, allowed=None):
        def read_list(text):
            values = tuple(convert(word) for word in text.split(","))
            if allowed and (unknown := [value for value in values if value not in allowed]):
                raise argparse.ArgumentTypeError(f"{unknown[0]}, allowed are {', '.join(allowed)}")
            return values

        return read_list

    parser = page.parser(__doc__)
    parser.set_defaults(rounds=9)
    parser.add_argument("--only", type=list_of(str, tuple(PARTS)), default=tuple(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--processes", type=list_of(int), default=PROCESSES, help="of all-reduces: 2,4")
    parser.add_argument("--sizes", type=list_of(int), default=SIZES, help="of all-reduces, bytes")
    parser.add_argument("--types", type=list_of(str, TYPES), default=TYPES, help="of all-reduces: float32,bfloat16")
    parser.add_argument("--works", type=list_of(str, tuple(moves.WORKS)), default=tuple(moves.WORKS), help=f"of transfers: {', '.join(moves.WORKS)}")
    parser.add_argument("--memory", type=list_of(str, tuple(moves.MEMORIES)), default=tuple(moves.MEMORIES), help="of transfers: ordinary,library")
    parser.add_argument("--budget", type=float, default=10, help="seconds that a row aims at, by fewer rounds")
    parser.add_argument("--limit", type=float, default=60, help="seconds after which a row is ended")
    parser.add_argument("--nixl-thread", action="store_true", help="NIXL has a thread in each process that polls")
    parser.add_argument("--least", type=float, default=5, help="milliseconds of a batch of calls")
    parser.add_argument("--deepspeed", type=Path, default=Path(sys.prefix) / "deepspeed", help="where it is compiled")
    parser.add_argument("--strict", action="store_true", help="fail when a row is missed")
    parser.add_argument("--worker", choices=tuple(PARTS), help=argparse.SUPPRESS)
    parser.add_argument("--after", help=argparse.SUPPRESS)
    parser.add_argument("--alone", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = options()
    if given.worker:
        work_as(given)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    usual = {"only": tuple(PARTS), "processes": PROCESSES, "sizes": SIZES, "types": TYPES}
    usual |= {"works": tuple(moves.WORKS), "memory": tuple(moves.MEMORIES)}
    everything, failures, busy = {part: [] for part in given.only}, [], record.busy_cores()
    for part, world, own in tables(given):
        its = argparse.Namespace(**{**vars(given), **own})
        began = time.monotonic()
        results, errors = measure(part, world, its, own)
        everything[part] += results
        failures += errors
        print(report.text_table(report.lines_of(results, rival=PARTS[part])), *errors, sep="\n", flush=True)
        print(f"({time.monotonic() - began:.0f} s)", flush=True)
    program = ["build/rivals/bin/python", "benchmarks/python/rivals.py"] + ["--nixl-thread"] * given.nixl_thread
    for part, results in everything.items() if given.record else ():
        command = report.typed_again(program, argparse.Namespace(**{**vars(given), "only": (part,)}), usual)
        identity, title = TABLES[part]
        said = [failure for failure in failures if failure.startswith(PARTS[part])]
        rows_found = [row_of_record(part, result) for result in results]
        record.add(given.record, identity, record.table(title, command, PARTS[part], versions(part), rows_found, said, busy))
    missed = any(one.verdict() == "missed" for results in everything.values() for one in results)
    sys.exit(1 if failures or not any(everything.values()) or (given.strict and missed) else 0)


if __name__ == "__main__":
    main()
