# SPDX-License-Identifier: Apache-2.0
"""Ranks have parts of a matrix: gather and multiply it in one step, and share the sum of products.

    oshrun -n 2 python symmetric_tensors.py [ROWS [COLUMNS]]
    torchrun --nproc-per-node=2 symmetric_tensors.py

Shows ``memspan.torch``: symmetric tensors, ``fused_all_gather_matmul`` and
``fused_matmul_reduce_scatter``. SHMEM_IP_PORT says where rank 0 hosts the store.
"""

import argparse
import os
import sys

try:
    import torch
except ImportError:
    print("symmetric_tensors: skipped, since PyTorch is not here")
    sys.exit(0)
from memspan.torch import symmetric_memory as sm

INNER = 32


def random(shape, seed):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def is_close(result, expected):
    return torch.allclose(result, expected, rtol=1e-4, atol=1e-4)


def use(rank, ranks, rows, columns):
    """Whether the products are right."""
    parts = [random((rows, INNER), seed) for seed in range(ranks)]
    weights = random((INNER, columns), 1000)
    # Everybody's symmetric tensors are at the same place: ranks read the next one's part directly.
    mine = sm.empty((rows, INNER))
    mine.copy_(parts[rank])
    sm.barrier()
    next_rank = (rank + 1) % ranks
    theirs = sm.rendezvous(mine).get_buffer(next_rank, (rows, INNER), torch.float32)
    is_read = torch.equal(theirs, parts[next_rank])
    gathered = torch.empty(rows * ranks, INNER)
    product = torch.empty(rows * ranks, columns)
    sm.fused_all_gather_matmul(mine, weights, product, gathered)
    is_gathered = torch.equal(gathered, torch.cat(parts))
    is_multiplied = is_close(product, torch.cat(parts) @ weights)
    # And back: rows of this rank of the sum of what all ranks have.
    total = sm.fused_matmul_reduce_scatter(gathered * (rank + 1), weights)
    expected = parts[rank] @ weights * sum(range(1, ranks + 1))
    return is_read and is_gathered and is_multiplied and is_close(total, expected)


def main():
    parser = argparse.ArgumentParser(description="Products of matrices whose parts ranks have.")
    parser.add_argument("rows", nargs="?", type=int, default=64, help="of each rank")
    parser.add_argument("columns", nargs="?", type=int, default=48)
    given = parser.parse_args()
    for name, value in (("rows", given.rows), ("columns", given.columns)):
        if not 1 <= value <= 1 << 13:
            parser.error(f"{name} is {value}, allowed are 1 to {1 << 13}")
    rank = int(os.environ.get("RANK", "0"))
    ranks = int(os.environ.get("WORLD_SIZE", "1"))
    is_right = use(rank, ranks, given.rows, given.columns)
    if rank == 0 or not is_right:
        verdict = "PASS" if is_right else f"FAIL at rank {rank}"
        there = f"{ranks} rank{'' if ranks == 1 else 's'}"
        print(f"symmetric_tensors: {there}, {given.rows} rows each, {verdict}", flush=True)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
