# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backends memspan and gloo, next to a bare copy, in alternating rounds.

    python benchmarks/python/collectives.py [--rounds N] [--record FILE] [--hosts]

Run it by an interpreter that has memspan and PyTorch. For each collective, size and number of processes
every round times gloo, memspan and a copy of as many bytes within a process, one after the other; the
tables have the median times and the median of the rounds' ratios. The last rows are training steps of
DistributedDataParallel and FSDP2: what they take longer with a backend than without any communication.

With --hosts, as root, only all-reduces are timed, of two processes in a network namespace each. What is
bare there is an exchange over a TCP connection: both processes send as many bytes as the tensor has, and
receive as many, as both must of any all-reduce of two.
"""

import argparse
import contextlib
import datetime
import json
import os
import select
import socket
import statistics
import sys
import tempfile
import time
import warnings
from importlib.metadata import version

import page
import workers
from page import record

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "tests/support"))

from jobs.namespaces import Hosts  # noqa: E402

KIB, MIB = 1 << 10, 1 << 20
SIZES = [KIB, 16 * KIB, 256 * KIB, MIB, 4 * MIB, 64 * MIB]
WORLDS = [2, 4]
BACKENDS = ("gloo", "memspan")
BUDGET = 16 * MIB  # bytes of a timing, in as many calls as that takes
MOST_CALLS = 100
LIMIT_S = 1500
LEAST_RATIO, LEAST_MEAN, MOST_STEP = 2.0, 4.0, 0.8
MOST_AFTER, MOST_OF_REDUCTION, MOST_SHARDED = 0.4, 1.7, 0.25
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 40)}  # docs/pytorch.md
LEAST_RATIO_OF_HOSTS = 1.5


# ---- in the processes


def collectives(dist, torch, world, count):
    """Names and calls; a call is given the group. Sizes are of the larger side's tensor."""
    part = max(count // world, 1)
    whole, other, piece = torch.ones(count), torch.ones(count), torch.ones(part)
    return {
        "all-reduce": lambda group: dist.all_reduce(whole, group=group),
        "all-gather": lambda group: dist.all_gather_single(other[: part * world], piece, group=group),
        "reduce-scatter": lambda group: dist.reduce_scatter_single(piece, whole[: part * world], group=group),
        "all-to-all": lambda group: dist.all_to_all_single(other[: part * world], whole[: part * world], group=group),
        "broadcast": lambda group: dist.broadcast(whole, 0, group=group),
    }, lambda: other.copy_(whole)


def timed(dist, call, calls, group):
    dist.barrier(group=group)
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begin) / calls


class Exchange:
    """Both of two processes send bytes over a connection of their own, and receive as many."""

    CHUNK = 256 * KIB

    def __init__(self, dist):
        address = [None]
        if dist.get_rank() == 0:
            listener = socket.create_server((os.environ["MASTER_ADDR"], 0))
            address = [listener.getsockname()]
        dist.broadcast_object_list(address)
        self.socket = listener.accept()[0] if dist.get_rank() == 0 else socket.create_connection(address[0])
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.poll = select.poll()
        self.poll.register(self.socket, select.POLLIN)

    def __call__(self, outgoing, incoming):
        sent = received = 0
        while sent < len(outgoing) or received < len(incoming):
            was = sent + received
            with contextlib.suppress(BlockingIOError):
                sent += self.socket.send(outgoing[sent : sent + self.CHUNK]) if sent < len(outgoing) else 0
            with contextlib.suppress(BlockingIOError):
                received += self.socket.recv_into(incoming[received : received + self.CHUNK])
            if sent + received == was:
                wanted = (select.POLLOUT if sent < len(outgoing) else 0) | (select.POLLIN if received < len(incoming) else 0)
                self.poll.modify(self.socket, wanted)
                self.poll.poll(1000)


def time_collectives(dist, torch, groups, rounds, chosen=None, exchange=None):
    """(name, bytes, gloo s, memspan s, bare s, ratio) lines of rank 0; bare is a copy, or the exchange"""
    rank, world = dist.get_rank(), dist.get_world_size()
    for size in SIZES:
        calls, bare = collectives(dist, torch, world, size // 4)
        if exchange:
            outgoing, incoming = memoryview(bytes(size)), memoryview(bytearray(size))
            bare = lambda: exchange(outgoing, incoming)  # noqa: E731
        repeats = max(3, min(MOST_CALLS, BUDGET // size))
        for name, call in calls.items():
            if chosen and name not in chosen:
                continue
            times = {backend: [] for backend in (*BACKENDS, "bare")}
            for group in groups.values():
                call(group)
            for _ in range(rounds):
                for backend, group in groups.items():
                    times[backend].append(timed(dist, lambda: call(group), repeats, group))
                times["bare"].append(timed(dist, bare, repeats, groups["memspan"]))
            if rank == 0:
                print("row", name, size, json.dumps(times), sep="\t", flush=True)


def replicas_of(model, groups):
    """The model in DistributedDataParallel of each group, of memspan's with its hook, and with a hook that does nothing."""
    from memspan.torch import reduce_after_backward
    from torch.futures import Future
    from torch.nn.parallel import DistributedDataParallel

    def nothing(_, bucket):
        future = Future()
        future.set_result(bucket.buffer())
        return future

    replicas = {name: DistributedDataParallel(model, process_group=group) for name, group in groups.items()}
    for name in ("after", "nothing"):
        replicas[name] = DistributedDataParallel(model, process_group=groups["memspan"])
    reduce_after_backward(replicas["after"])
    replicas["nothing"].register_comm_hook(None, nothing)
    return replicas


def sharded_by(group, model):
    """Such a model in FSDP2."""
    import copy

    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh, sharded = DeviceMesh.from_group(group, "cpu"), copy.deepcopy(model)
    for layer in sharded:
        fully_shard(layer, mesh=mesh)
    return fully_shard(sharded, mesh=mesh)


def time_steps(dist, torch, groups, rounds):
    """A line of rank 0: s of a step with each side in each round, and of the all-reduces; 25 million parameters"""
    torch.manual_seed(3)
    width = 2500
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(4)))
    count = sum(p.numel() for p in model.parameters())
    sharded = {f"sharded {name}": sharded_by(group, model) for name, group in groups.items()}
    sides = {**replicas_of(model, groups), **sharded}
    batch, flat = torch.randn(64, width), torch.ones(count)

    def step(side, alone=False):
        with side.no_sync() if alone else contextlib.nullcontext():
            side(batch).sum().backward()
        side.zero_grad()

    calls = {name: (lambda side=side: step(side)) for name, side in sides.items()}
    calls["alone"] = lambda: step(sides["memspan"], True)
    calls["reduction"] = lambda: dist.all_reduce(flat, group=groups["memspan"])
    times = {name: [] for name in calls}
    for turn in range(rounds + 1):  # the first builds the buckets anew
        for name, call in calls.items():
            took = timed(dist, call, 3, groups["gloo" if "gloo" in name else "memspan"])
            if turn > 0:
                times[name].append(took)
    if dist.get_rank() == 0:
        print("step", count, json.dumps(times), sep="\t", flush=True)


def worker(what, rounds):
    import memspan.torch  # noqa: F401: its backend
    import torch
    import torch.distributed as dist

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=300))
    groups = {name: dist.new_group(backend=name) for name in BACKENDS}
    if what == "steps":
        time_steps(dist, torch, groups, rounds)
    elif what == "hosts":
        time_collectives(dist, torch, groups, rounds, ["all-reduce"], Exchange(dist))
    else:
        time_collectives(dist, torch, groups, rounds)
    dist.barrier()
    if dist.get_rank() == 0:
        print("versions", torch.__version__, sep="\t")
    dist.destroy_process_group()


# ---- in the parent


def run(what, world, rounds, inside=lambda rank: [], **variables):
    """The lines of rank 0, split. inside(rank): words before the command of a process."""
    command = [__file__, "--worker", what, "--rounds", str(rounds)]
    return [line.split("\t") for line in workers.run(command, world, LIMIT_S, inside, **variables).splitlines()]


def run_on_two_hosts(what, rounds):
    """The same on a network namespace for each process."""
    with tempfile.NamedTemporaryFile("w", dir="/var/tmp") as secret, Hosts(2, own_tmp=False) as hosts:
        secret.write("the secret of two hosts")
        secret.flush()
        return run(what, 2, rounds, hosts.inside, MASTER_ADDR=hosts.addresses[0], MEMSPAN_JOB_SECRET_FILE=secret.name)


def rows_of(lines, world, target, name="{}"):
    """Rows of the record; what is bare is printed."""
    rows = []
    for kind, size, values in (line[1:] for line in lines if line[0] == "row"):
        times = {what: [value * 1e6 for value in found] for what, found in json.loads(values).items()}
        print(f"{kind}, {size} bytes, {world} processes: the bare way takes {statistics.median(times['bare']):.4g} us")
        rows.append(record.of_rounds(name.format(kind), "us", times["memspan"], times["gloo"], size=page.size_text(int(size)), processes=world, target=1 / target))
    return rows


def mean_of(rows, world):
    mean = statistics.geometric_mean(row.ratio for row in rows)
    return record.Row("geometric mean", "", processes=world, ratio=mean, target=1 / LEAST_MEAN, rounds=rows[0].rounds)


def step_row(lines, name, ours, rival, without, target, **more):
    """What a step takes longer with `ours` than with `without`; the same of the rival, or its whole time."""
    _, count, values = next(line for line in lines if line[0] == "step")
    times = {what: [value * 1e6 for value in found] for what, found in json.loads(values).items()}
    mine = [a - b for a, b in zip(times[ours], times[without])]
    theirs = times[rival] if rival == "reduction" else [a - b for a, b in zip(times[rival], times[without])]
    name = name.format(f"{int(count) // 1_000_000} million parameters")
    return record.of_rounds(name, "us", mine, theirs, processes=2, target=target, **more)


def rows_of_steps(rounds):
    plain = run("steps", 2, rounds)
    kept = run("steps", 2, rounds, **KEEPS_MEMORY)
    after = "the same with reduce_after_backward() and kept memory, beyond a hook that does nothing"
    return [
        step_row(plain, "time that communication adds to a step of DistributedDataParallel, {}", "memspan", "gloo", "alone", MOST_STEP),
        step_row(kept, after, "after", "gloo", "nothing", MOST_AFTER),
        step_row(kept, after, "after", "reduction", "nothing", MOST_OF_REDUCTION, against="an all-reduce of as many bytes"),
        step_row(kept, "time that communication adds to a step of FSDP2 with kept memory, {}", "sharded memspan", "sharded gloo", "alone", MOST_SHARDED),
    ]


def main():
    parser = page.parser(__doc__)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--hosts", action="store_true", help="all-reduces of two network namespaces; as root")
    given = parser.parse_args()
    if given.worker:
        worker(given.worker, given.rounds)
        return
    command = f"python benchmarks/python/collectives.py --rounds {given.rounds}" + " --hosts" * given.hosts
    if given.hosts:
        lines = run_on_two_hosts("hosts", given.rounds)
        rows, title, identity = rows_of(lines, None, LEAST_RATIO_OF_HOSTS, "{} of float32"), "gloo, between hosts", "hosts-gloo"
    else:
        rows, title, identity = [], "PyTorch's gloo", "gloo"
        for world in WORLDS:
            lines = run("collectives", world, given.rounds)
            found = rows_of(lines, world, LEAST_RATIO)
            rows += [*found, mean_of(found, world)]
        rows += rows_of_steps(given.rounds)
    versions = {"memspan": version("memspan"), "PyTorch": lines[-1][1].partition("+")[0]}
    one = record.table(title, command, "gloo", versions, rows)
    page.show(one)
    if given.record:
        record.add(given.record, identity, one)


if __name__ == "__main__":
    main()
