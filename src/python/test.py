# SPDX-License-Identifier: Apache-2.0
"""A first test of an installed wheel: ``torchrun --nproc-per-node=2 test.py``. Uses torch.distributed
where torch is there."""

import os

import shmem

HEAP = 1 << 30


def start_group():
    try:
        import torch.distributed as dist
    except ImportError:
        return None
    dist.init_process_group("gloo")
    return dist


def run(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0, shmem.errors.last_error()
    memory = shmem.shmem_malloc(1 << 20)
    assert memory is not None
    assert (shmem.get_my_pe(), shmem.get_pe_count()) == (rank, ranks)
    shmem.shmem_barrier_all()
    shmem.shmem_free(memory)
    shmem.register_decrypt_handler(lambda cipher: cipher)
    shmem.shmem_finalize()


def main():
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    group = start_group()
    for _ in range(2):  # a job may be followed by another one at the same place
        run(rank, ranks)
    if group is not None:
        group.barrier()
        group.destroy_process_group()
    if rank == 0:
        print("test.py running success!", flush=True)


if __name__ == "__main__":
    main()
