#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The all-reduce of an engine's sizes: memspan's operator and vLLM's own shared memory, in the same processes.

    python benchmarks/engines/all_reduce.py [--rounds 15] [--ranks 2] [--sizes 1024,8192] [--types bfloat16]

needs the environment of scripts/test.sh engines. Both sides are called as vLLM's communicator calls them; batches alternate, and who
goes first changes with every round. The ratio is memspan's time to vLLM's within a round. A row of 1 KiB of bfloat16 is one token of a
model whose hidden size is 512, one of 64 KiB eight tokens of 4096. The exit code is 1 when the results differ: two ranks' sums have the same
bits on both sides.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

import alternating  # noqa: E402
import workers  # noqa: E402

KIB = 1 << 10
SIZES = (512, KIB, 4 * KIB, 8 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB)
LIMIT_S = 600


def sides_of(tensor, handle, collectives):
    import torch

    class Own:
        """vLLM's class does no more for each call."""

        def all_reduce(self, input, group=None):
            torch.ops._C.shm_allreduce(handle, input)

    own = Own()
    return {
        "memspan": lambda: collectives.all_reduce(tensor, group=None),
        "vllm": lambda: own.all_reduce(tensor, group=None),
    }


def work(given):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("memspan")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    import vllm._C  # noqa: F401: its operators
    from memspan.connectors.vllm_backend import Collectives

    name = f"memspan-all-reduce-{os.environ['MASTER_PORT']}"
    handle = torch.ops._C.init_shm_manager(name, ranks, rank, 1)
    dist.barrier()
    torch.ops._C.join_shm_manager(handle, name)
    dist.barrier()
    Path(f"/dev/shm/{name}_{rank}").unlink()  # mapped by all, and left by nobody
    alternating.bind(rank, ranks)
    collectives = Collectives(dist.group.WORLD)

    def agree(value):
        told = torch.tensor([value], dtype=torch.float64)
        dist.broadcast(told, 0)
        return told.item()

    pace = alternating.Pace(2e-3, given.rounds, 10)
    for type_name in given.types:
        for size in given.sizes:
            dtype = getattr(torch, type_name)
            tensor = torch.zeros(size // dtype.itemsize, dtype=dtype)
            sides = sides_of(tensor, handle, collectives)
            sums = []
            for call in sides.values():
                tensor.copy_(torch.arange(tensor.numel()) % 16 + rank)
                call()
                sums.append(tensor.clone())
            if not torch.equal(*sums):
                print(f"# ERROR {type_name}, {size} bytes: the sums differ", flush=True)
                os._exit(1)
            tensor.zero_()
            times = alternating.times_of(sides, pace, dist.barrier, agree)
            if rank == 0:
                ratios = [ours / theirs for ours, theirs in zip(times["memspan"], times["vllm"])]
                low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive")
                ours, theirs = (statistics.median(times[side]) * 1e6 for side in sides)
                print(f"| {type_name} | {size} | {ours:.2f} | {theirs:.2f} | {middle:.3f} | {low:.3f} - {high:.3f} |", flush=True)
    dist.barrier()
    os._exit(0)


def options():
    def numbers(text):
        return tuple(int(word) for word in text.split(","))

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--sizes", type=numbers, default=SIZES, help="bytes")
    parser.add_argument("--types", type=lambda text: text.split(","), default=("bfloat16", "float32"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    given = options()
    if given.worker:
        return work(given)
    printed = workers.run([str(Path(__file__).resolve()), "--worker", *sys.argv[1:]], given.ranks, LIMIT_S)
    print("| type | bytes | memspan, us | vLLM, us | ratio | quartiles |\n|---|---|---|---|---|---|")
    print("\n".join(line for line in printed.splitlines() if line.startswith(("|", "#"))))
    return 1 if "# ERROR" in printed else 0


if __name__ == "__main__":
    sys.exit(main())
