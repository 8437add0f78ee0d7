# SPDX-License-Identifier: Apache-2.0
"""One process of the all-reduces of rivals.py: PyTorch's backend and operator of memspan next to DeepSpeed's operator.

Rows are named by the type of the tensor; the sides are c10d and operator, which are memspan's, rival, and bare.
"""

import contextlib
import datetime

import alternating
import deepspeed_op

OURS = ("c10d", "operator")


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


def agreed(torch, dist):
    """Gives rank 0's value to all."""

    def agree(value):
        told = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(told, 0)
        return told.item()

    return agree


def rows(given):
    return [(name, size) for name in given.types for size in given.sizes]


def work(given, todo, limit_s, rank, world):
    """Measures the rows `todo`; whether all results were right."""
    import memspan.torch  # noqa: F401: its backend
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=limit_s))
    group = dist.new_group(backend="memspan")
    if not given.alone:
        deepspeed_op.start(given.deepspeed, rank, world)
    alternating.bind(rank, world)
    is_right = True
    for name, size in todo:
        alternating.begin(rank, name, size)
        tensor = torch.zeros(size // getattr(torch, name).itemsize, dtype=getattr(torch, name))
        other = tensor.clone()
        calls = {
            "c10d": lambda: dist.all_reduce(tensor, group=group),
            "operator": operator_call(torch, tensor, group),
            "rival": None if given.alone else lambda: torch.ops.deepspeed.inference_all_reduce_(tensor),
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
        times = alternating.times_of(calls, given.pace, lambda: dist.barrier(group=group), agreed(torch, dist))
        slowest = torch.tensor(list(times.values()), dtype=torch.float64)
        dist.all_reduce(slowest, op=dist.ReduceOp.MAX)
        if rank == 0:
            alternating.tell(name, size, dict(zip(times, slowest.tolist())))
    dist.barrier()
    return is_right
