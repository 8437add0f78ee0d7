# SPDX-License-Identifier: Apache-2.0
"""The collectives that an inference engine does between tensor-parallel ranks, by memspan's operators.

    torchrun --nproc-per-node=2 engine_collectives.py [COUNT]

``EngineCollectives`` has the methods of what vLLM's communicator of the CPU calls its ``dist_module``, so that

    communicator.dist_module = EngineCollectives(communicator.device_group)

gives it to memspan. SGLang's coordinator of a group adds up partial results on the CPU in ``all_reduce(input_)``,
in place: there it is ``EngineCollectives(coordinator.device_group).all_reduce(input_)``. Shows
``torch.ops.memspan.all_reduce_`` and ``all_gather_out``, also traced by ``torch.compile``.
"""

import argparse
import sys
import time

try:
    import memspan.torch  # noqa: F401 - the backend
    import torch
    import torch.distributed as dist
except ImportError:
    print("engine_collectives: skipped, since PyTorch is not here")
    sys.exit(0)

CALLS = 200


class EngineCollectives:
    """Of one process group of the backend memspan. One thread at a time, as all collectives of a group."""

    def __init__(self, group):
        self.group = group
        self.name = group.group_name

    def all_reduce(self, input, group=None):
        torch.ops.memspan.all_reduce_(input, self.name)

    def all_gather_into_tensor(self, output, input, group=None):
        torch.ops.memspan.all_gather_out(output, input, self.name)

    def gather(self, input, gather_list, dst=0, group=None):
        # `dst` is a rank of the world. No engine does this for every token.
        dist.gather(input, gather_list, dst=dst, group=self.group)


def is_right(collectives, rank, ranks, count):
    partial = torch.arange(count, dtype=torch.float32) + rank
    expected = torch.arange(count) * ranks + sum(range(ranks))
    total = partial.to(torch.bfloat16)
    collectives.all_reduce(total)
    close = torch.allclose(total.float(), expected.float(), rtol=0.02)
    total = partial.clone()
    collectives.all_reduce(total)
    rows = torch.empty(ranks, count)
    collectives.all_gather_into_tensor(rows, partial[None])
    parts = [torch.empty(count) for _ in range(ranks)] if rank == 0 else None
    collectives.gather(partial, parts)
    gathered = rank != 0 or torch.equal(torch.stack(parts), rows)
    return close and torch.equal(total, expected.float()) and torch.equal(rows[rank], partial) and gathered


def microseconds(call, tensor):
    call(tensor)
    begin = time.perf_counter()
    for _ in range(CALLS):
        call(tensor)
    return (time.perf_counter() - begin) / CALLS * 1e6


def main():
    parser = argparse.ArgumentParser(description="Collectives of an engine by memspan's operators.")
    parser.add_argument("count", nargs="?", type=int, default=4096, help="elements of a partial result")
    count = parser.parse_args().count
    if not 1 <= count <= 1 << 24:
        parser.error(f"count is {count}, allowed are 1 to {1 << 24}")
    dist.init_process_group("memspan")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    collectives = EngineCollectives(dist.group.WORLD)
    right = is_right(collectives, rank, ranks, count)
    zeros = torch.zeros(count, dtype=torch.bfloat16)
    ours = microseconds(collectives.all_reduce, zeros)
    usual = microseconds(dist.all_reduce, zeros)
    dist.destroy_process_group()
    if rank == 0 or not right:
        print(f"# all-reduce of {count} bfloat16: operator {ours:.1f} us, torch.distributed {usual:.1f} us")
        verdict = "PASS" if right else f"FAIL at rank {rank}"
        print(f"engine_collectives: {ranks} rank{'' if ranks == 1 else 's'}, {count} elements, {verdict}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
