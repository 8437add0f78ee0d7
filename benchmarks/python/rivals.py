#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""memspan next to DeepSpeed's all-reduce of CPU tensors and next to NIXL's transfers, in the same processes.

    benchmarks/install_rivals.sh build/rivals dist/memspan-*.whl
    build/rivals/bin/python benchmarks/python/rivals.py [--only allreduce,transfers] [--rounds 9] [--write-docs]

All-reduces: of tensors of float32 and bfloat16, in place, through c10d's backend memspan, and through the
operator torch.ops.memspan.all_reduce_ where the wheel has it; the rival is torch.ops.deepspeed.inference_all_reduce_
(deepspeed_op.py), bare is a copy of as many bytes. Transfers: pieces of ordinary memory that both have registered,
scattered, written to and read from another process of this host; NIXL has its own UCX, with the transports that it
chooses. Who goes first changes with every round; a batch takes as long as its slowest process does. The exit code is 1
when something failed (with --strict: or a row was missed).
"""

import argparse
import contextlib
import datetime
import json
import os
import signal
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "compare")]

import deepspeed_op  # noqa: E402
import jobs  # noqa: E402
import page  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402
import workers  # noqa: E402
from transfer_sides import Memory, MemspanSide, NixlSide, Work  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SIZES = (64, KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB)
TYPES = ("float32", "bfloat16")
PROCESSES = (2, 4)
WORKS = {  # of transfers: label, size of a row, pieces
    "block": ("cache block, 61 × 128 KiB + 61 × 16 KiB", 61 * 144 * KIB, [128 * KIB, 16 * KIB] * 61),
    "one4k": ("one", 4 * KIB, [4 * KIB]),
    "one64k": ("one", 64 * KIB, [64 * KIB]),
    "scattered32k": ("32 scattered", 32 * KIB, [32 * KIB] * 32),
    "scattered256k": ("32 scattered", 256 * KIB, [256 * KIB] * 32),
    "scattered2m": ("32 scattered", 2 * MIB, [2 * MIB] * 32),
    "many256": ("100,000 scattered", 256, [256] * 100_000),
    "many4k": ("100,000 scattered", 4 * KIB, [4 * KIB] * 100_000),
}
WAYS = ("write", "read")
LIMIT_S = 1200


# ---- in the processes


def bind(rank, world):
    """To a core of its own, where there are enough; once the libraries have started, which take the cores that they may
    use for all there are."""
    if world <= len(os.sched_getaffinity(0)):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})


def calls_for(call, least_s):
    """How many take so long."""
    call()
    begin = time.perf_counter()
    for _ in range(3):
        call()
    return max(3, min(20_000, int(least_s * 3 / max(time.perf_counter() - begin, 1e-7))))


def rounds_of(sides, counts, rounds, meet):
    """{side: [s of a call in each round]}; meet() is a barrier before each batch, after a call that is not timed."""
    times = {name: [] for name in sides}
    order = list(sides)
    for _ in range(rounds):
        for name in order:
            call = sides[name]
            call()
            meet()
            begin = time.perf_counter()
            for _ in range(counts[name]):
                call()
            times[name].append((time.perf_counter() - begin) / counts[name])
        order.reverse()
    return times


def tell(name, size, times):
    for side, values in times.items():
        print("row", name, size, side, *(f"{value * 1e6:.4f}" for value in values), flush=True)


def operator_call(torch, tensor, group):
    """torch.ops.memspan.all_reduce_; None where the wheel does not have it."""
    with contextlib.suppress(AttributeError):
        operator, name = torch.ops.memspan.all_reduce_, group.group_name
        return lambda: operator(tensor, name)
    return None


def differs(torch, tensor, calls, rank):
    """Names of the calls that do not make of the tensor what the first one does."""
    values = (torch.arange(tensor.numel()) % 16 + rank + 1).to(tensor.dtype)
    results = {}
    for name, call in calls.items():
        tensor.copy_(values)
        call()
        results[name] = tensor.clone()
    first = next(iter(results.values()))
    return [name for name, result in results.items() if not torch.equal(result, first) or torch.equal(result, values)]


def reduce_worker(given, rank, world):
    import memspan.torch  # noqa: F401: its backend
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=LIMIT_S))
    group = dist.new_group(backend="memspan")
    deepspeed_op.start(given.deepspeed, rank, world)
    bind(rank, world)
    is_right = True
    for name in given.types:
        for size in given.sizes:
            tensor = torch.zeros(size // getattr(torch, name).itemsize, dtype=getattr(torch, name))
            other = tensor.clone()
            calls = {
                "c10d": lambda: dist.all_reduce(tensor, group=group),
                "operator": operator_call(torch, tensor, group),
                "rival": lambda: torch.ops.deepspeed.inference_all_reduce_(tensor),
            }
            calls = {side: call for side, call in calls.items() if call}
            wrong = [None] * world
            dist.all_gather_object(wrong, differs(torch, tensor, calls, rank))
            if any(wrong):
                is_right = False
                if rank == 0:
                    print(f"# ERROR all-reduce of {name}, {size} bytes: {wrong} differ", flush=True)
                continue
            tensor.zero_()  # stays so, whatever the number of calls
            calls["bare"] = lambda: other.copy_(tensor)
            counts = torch.tensor([calls_for(call, given.least * 1e-3) for call in calls.values()])
            dist.broadcast(counts, 0)
            times = rounds_of(calls, dict(zip(calls, counts.tolist())), given.rounds, lambda: dist.barrier(group=group))
            slowest = torch.tensor(list(times.values()))
            dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
            if rank == 0:
                tell(name, size, dict(zip(times, slowest.tolist())))
    dist.barrier()
    return is_right


def transfer_worker(given, rank, world):
    """Rank 0 moves, rank 1's memory is moved to; both engines are in both."""
    import torch.distributed as dist

    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=LIMIT_S))
    store_port = [workers.free_port()]
    dist.broadcast_object_list(store_port)
    works = {name: Work.scattered(WORKS[name][2]) for name in given.works}
    memory = Memory(max(work.room for work in works.values()), rank + 1)
    sides, reached = {}, {}
    for name, side in (("memspan", MemspanSide), ("rival", NixlSide)):
        if rank == 0:
            dist.barrier()  # the store is there, and its owner
        sides[name] = side(rank, ("127.0.0.1", "127.0.0.1"), store_port[0])
        if rank == 1:
            dist.barrier()
        told = [None] * world
        dist.all_gather_object(told, sides[name].register(memory))
        reached[name] = told[1]
    bind(rank, world)
    is_right = True
    for name, work in works.items():
        moves = {side: sides[side].connect(memory, reached[side], work) for side in sides} if rank == 0 else dict.fromkeys(sides)
        is_right = all([moved_right(dist, memory, work, move, rank) for move in moves.values()]) and is_right
        if rank == 0 and is_right:
            for way in WAYS:
                calls = {side: lambda move=move: move(way) for side, move in moves.items()}
                counts = {side: calls_for(call, given.least * 1e-3) for side, call in calls.items()}
                tell(f"{way}-{name}", WORKS[name][1], rounds_of(calls, counts, given.rounds, lambda: None))
        elif not is_right:
            print(f"# ERROR transfers of {name}: wrong bytes", flush=True)
        dist.barrier()
    return is_right


def moved_right(dist, memory, work, move, rank):
    """Whether random bytes are the same there after a write, and here again after a read."""
    same = [True]
    memory.fill(rank + 1)
    dist.barrier()  # nothing arrives before that
    if rank == 0:
        memory.randomize(work.mine, work.sizes)
        move("write")
    sent = [memory.pieces(work.mine, work.sizes) if rank == 0 else None]
    dist.broadcast_object_list(sent)
    if rank == 1:
        same = [memory.pieces(work.theirs, work.sizes) == sent[0]]
    dist.broadcast_object_list(same, src=1)
    if rank == 0:
        memory.fill(0)
        move("read")
        same[0] = same[0] and memory.pieces(work.mine, work.sizes) == sent[0]
    dist.broadcast_object_list(same, src=0)
    return same[0]


def work_as(what, given):
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    signal.alarm(LIMIT_S)
    is_right = {"allreduce": reduce_worker, "transfers": transfer_worker}[what](given, rank, world)
    sys.stdout.flush()
    os._exit(0 if is_right else 1)  # the rivals' own ends take seconds, or crash


# ---- in the parent


def read(printed):
    """{(name, size): {side: [us of each round]}}"""
    found = {}
    for words in map(str.split, printed.splitlines()):
        if len(words) > 4 and words[0] == "row":
            found.setdefault((words[1], int(words[2])), {})[words[3]] = [float(value) for value in words[4:]]
    return found


def result(label, size, processes, sides, ours):
    columns = [sides.get(side, [None] * len(sides[ours])) for side in (ours, "rival", "bare")]
    row = rows.Row("", label, label, size, rows.LEVEL, "bare" if "bare" in sides else "")
    return rows.Result(row, "us", [rows.Sample(*values) for values in zip(*columns)], processes)


def all_reduces(given):
    results = []
    for world in given.processes:
        port = workers.free_port()  # DeepSpeed's segments have its name, and stay
        try:
            printed = workers.run([*sys.argv, "--worker", "allreduce"], world, LIMIT_S, MASTER_PORT=str(port))
        finally:
            for left in Path("/dev/shm").glob(f"*_127.0.0.1_{port}_*"):
                left.unlink()
        for (name, size), sides in read(printed).items():
            for ours, label in (("c10d", f"all-reduce, {name}"), ("operator", f"all-reduce by the operator, {name}")):
                if ours in sides:
                    results.append(result(label, size, world, sides, ours))
    return results


def transfers(_given):
    variables = {"NIXL_LOG_LEVEL": "ERROR", "PYTHONDONTWRITEBYTECODE": "1"}
    printed = workers.run([*sys.argv, "--worker", "transfers"], 2, LIMIT_S, **variables)
    results = []
    for (name, size), sides in read(printed).items():
        way, _, work = name.partition("-")
        results.append(result(f"{way}, {WORKS[work][0]}", size, 2, sides, "memspan"))
    return results


PARTS = {"allreduce": ("DeepSpeed", all_reduces), "transfers": ("NIXL", transfers)}


def versions():
    import torch
    from importlib.metadata import version

    source = next(Path(sys.prefix).glob("deepspeed/deepspeed-*.tar.gz"), Path("deepspeed-unknown.tar.gz"))
    deepspeed = source.name.removeprefix("deepspeed-").removesuffix(".tar.gz")
    return f"memspan {version('memspan')}, PyTorch {torch.__version__}, DeepSpeed {deepspeed}, NIXL {version('nixl-cu12')}"


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
    parser.add_argument("--works", type=list_of(str, tuple(WORKS)), default=tuple(WORKS), help=f"of transfers: {', '.join(WORKS)}")
    parser.add_argument("--least", type=float, default=5, help="milliseconds of a batch of calls")
    parser.add_argument("--deepspeed", type=Path, default=Path(sys.prefix) / "deepspeed", help="where it is compiled")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--strict", action="store_true", help="fail when a row is missed")
    parser.add_argument("--worker", choices=tuple(PARTS), help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = options()
    if given.worker:
        work_as(given.worker, given)
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    usual = {"only": tuple(PARTS), "processes": PROCESSES, "sizes": SIZES, "types": TYPES, "works": tuple(WORKS)}
    command = report.typed_again(["build/rivals/bin/python", "benchmarks/python/rivals.py"], given, usual)
    facts = report.facts(given.rounds, os.getloadavg()[0], command)
    everything, tables = [], []
    for name in given.only:
        rival, measure = PARTS[name]
        results = measure(given)
        everything += results
        tables.append(report.markdown_table(report.lines_of(results, rival=rival)))
        print(report.text_table(results, "memspan", rival), flush=True)
    if given.json:
        given.json.write_text(json.dumps(report.as_json(everything, facts), indent=1) + "\n")
    if given.write_docs:
        page.show("\n\n".join([report.heading(facts, versions()), *tables]), "rivals", True)
    if given.strict and any(one.verdict() == "missed" for one in everything):
        sys.exit(1)


if __name__ == "__main__":
    main()
