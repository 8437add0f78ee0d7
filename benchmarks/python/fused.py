# SPDX-License-Identifier: Apache-2.0
"""Products fused with collectives, next to the product and the collective one after the other.

    python benchmarks/python/fused.py [--rounds N] [--ranks N] [--sizes N ...] [--record FILE]

Run it by an interpreter that has memspan and PyTorch. The product is N x N by N x N, of float32,
and divided as in tensor parallelism: for gather and multiply the ranks have rows of the left factor
and columns of the right one, for multiply and reduce columns and rows. Every rank has one thread.

A round runs every form once, each beginning at a barrier, in another order than the round before;
a form's time is that of the slowest rank. The record has medians of the rounds' times and ratios, next to gloo and next to
memspan's backend. The product alone, without the collective, is printed: a form that hides all of it takes as long.
"""

import json
import os
import statistics
import sys
import time

import memspan.torch
import page
import torch
import torch.distributed as dist
import torch.distributed._symmetric_memory as symm_mem
import workers
from memspan import __version__
from page import record

LEAST_S = 0.05  # a form runs so long in a round, by repetition
JOB_S = 3600
FASTER = 1.15  # than with gloo
OTHERS = ("gloo", "memspan")


class Forms:
    """The same result in each way, for one size."""

    def __init__(self, size, groups):
        ranks = dist.get_world_size()
        self.groups = groups
        self.part = size // ranks
        self.name = dist.group.WORLD.group_name
        generator = torch.Generator().manual_seed(dist.get_rank())

        def factor(rows, columns):
            return torch.randn(rows, columns, generator=generator)

        self.rows, self.columns = factor(self.part, size), factor(size, self.part)
        self.whole = torch.empty(size, size)
        self.wide = torch.empty(size, self.part)
        self.left, self.right = factor(size, self.part), factor(self.part, size)
        self.product = torch.empty(size, size)
        self.sum = torch.empty(self.part, size)

    def gather_bare(self):
        torch.mm(self.whole, self.columns, out=self.wide)

    def gather_fused(self):
        return torch.ops.symm_mem.fused_all_gather_matmul(
            self.rows, [self.columns], 0, self.name, return_A=False
        )[1][0]

    def gather_then(self, backend):
        dist.all_gather_single(self.whole, self.rows, group=self.groups[backend])
        return torch.mm(self.whole, self.columns, out=self.wide)

    def reduce_bare(self):
        torch.mm(self.left, self.right, out=self.product)

    def reduce_fused(self):
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(
            self.left, self.right, "sum", 0, self.name
        )

    def reduce_then(self, backend):
        torch.mm(self.left, self.right, out=self.product)
        dist.reduce_scatter_single(self.sum, self.product, group=self.groups[backend])
        return self.sum

    def all(self, kind):
        """By name; the results of all but the bare one are compared first."""
        fused = getattr(self, f"{kind}_fused")
        then = getattr(self, f"{kind}_then")
        forms = {"bare": getattr(self, f"{kind}_bare"), "fused": fused}
        right = then(OTHERS[0]).clone()
        for backend in OTHERS:
            forms[backend] = lambda backend=backend: then(backend)
        for name, form in forms.items():
            if name != "bare":
                torch.testing.assert_close(form(), right, rtol=1e-3, atol=1e-3)
        return forms


def slowest(seconds):
    result = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(result, dist.ReduceOp.MAX)
    return result.item()


def measure(forms, rounds, handle):
    """By form: its seconds in each round."""

    def seconds(form, times):
        handle.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            form()
        return slowest(time.perf_counter() - begin) / times

    times = 1 + int(LEAST_S / seconds(forms["bare"], 1))
    taken = {name: [] for name in forms}
    names = list(forms)
    for round in range(rounds):
        turn = round % len(names)
        for name in names[turn:] + names[:turn]:
            taken[name].append(seconds(forms[name], times))
    return taken


def run_rank(sizes, rounds):
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    memspan.torch.enable_symmetric_memory()
    handle = symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), dist.group.WORLD)
    groups = {name: dist.new_group(backend=name) for name in OTHERS}
    for kind, title in (("gather", "gather and multiply"), ("reduce", "multiply and reduce")):
        for size in sizes:
            forms = Forms(size, groups).all(kind)
            taken = measure(forms, rounds, handle)
            if dist.get_rank() == 0:
                print(json.dumps([title, size, taken]), flush=True)
    dist.destroy_process_group()


def run_job(ranks):
    """This program as every rank; [[title, size, {form: its seconds in each round}]]."""
    return [json.loads(line) for line in workers.run(sys.argv, ranks, JOB_S).splitlines()]


def table(found, given):
    rows = []
    for title, size, taken in found:
        us = {name: [value * 1e6 for value in values] for name, values in taken.items()}
        print(f"{title} {size}: the product alone is {statistics.median(us['bare']):.0f} us")
        for name, side, target in (("gloo", "gloo", 1 / FASTER), ("memspan's backend", "memspan", 1)):
            rows.append(record.of_rounds(f"{title}, next to {name}", "us", us["fused"], us[side], size=str(size), target=target))
    versions = {"memspan": __version__, "PyTorch": torch.__version__.partition("+")[0]}
    command = f"python benchmarks/python/fused.py --rounds {given.rounds} --ranks {given.ranks}"
    return record.table("a product, then its collective", command, "product, then collective", versions, rows)


def main():
    parser = page.parser(__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024, 2048, 4096])
    given = parser.parse_args()
    if given.ranks < 2 or any(size < given.ranks or size % given.ranks for size in given.sizes):
        parser.error("2 ranks and more, and sizes that are multiples of their number")
    if "RANK" in os.environ:
        run_rank(given.sizes, given.rounds)
        return
    one = table(run_job(given.ranks), given)
    page.show(one)
    if given.record:
        record.add(given.record, "fused", one)


if __name__ == "__main__":
    main()
