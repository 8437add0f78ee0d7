# SPDX-License-Identifier: Apache-2.0
"""The collectives that an inference engine does between tensor-parallel ranks, by memspan's operators:

    torchrun --nproc-per-node=2 engine_collectives.py [COUNT]

Shows ``torch.ops.memspan.all_reduce_`` and ``all_gather_out``, also traced by ``torch.compile``, in a class for an
engine's group of ranks. vLLM takes them with MEMSPAN_VLLM_BACKEND=1 and no code (docs/engines.md).
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
        self.name = group.group_name

    def all_reduce(self, input, group=None):
        torch.ops.memspan.all_reduce_(input, self.name)

    def all_gather_into_tensor(self, output, input, group=None):
        torch.ops.memspan.all_gather_out(output, input, self.name)


def is_right(collectives, rank, ranks, count):
    partial = torch.arange(count, dtype=torch.float32) + rank
    expected = torch.arange(count) * ranks + sum(range(ranks))
    rounded, total = partial.to(torch.bfloat16), partial.clone()
    collectives.all_reduce(rounded)
    collectives.all_reduce(total)
    close = torch.allclose(rounded.float(), expected.float(), rtol=0.02)
    rows = torch.empty(ranks, count)
    collectives.all_gather_into_tensor(rows, partial[None])
    return close and torch.equal(total, expected.float()) and torch.equal(rows[rank], partial)


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
    ours, usual = microseconds(collectives.all_reduce, zeros), microseconds(dist.all_reduce, zeros)
    dist.destroy_process_group()
    if rank == 0 or not right:
        print(f"# all-reduce of {count} bfloat16: operator {ours:.1f} us, torch.distributed {usual:.1f} us")
        verdict = "PASS" if right else "FAIL"
        print(f"engine_collectives: {ranks} rank{'' if ranks == 1 else 's'}, {count} elements, {verdict}", flush=True)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
