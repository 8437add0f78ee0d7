# SPDX-License-Identifier: Apache-2.0
"""Every process hands an array to the next one, again and again, until each is home.

    oshrun -n 4 python ring_shift.py [ELEMENTS]

Shows arrays of numpy on the symmetric heap, ``shmem_putmem`` and barriers.
"""

import argparse
import sys

import numpy as np
import shmem


def shift(elements):
    """How many elements are wrong here in the end."""
    me, n = shmem.get_my_pe(), shmem.get_pe_count()
    boxes = shmem.tensor((2, elements), "int64")  # what came, and room for what comes
    mine = np.arange(elements) + me
    boxes[0] = mine
    total = np.zeros(elements, np.int64)
    shmem.shmem_barrier_all()  # nobody puts before all have filled theirs
    for step in range(n):
        here, there = boxes[step % 2], boxes[(step + 1) % 2]
        total += here
        shmem.shmem_putmem(there, here, here.nbytes, pe=(me + 1) % n)
        shmem.shmem_barrier_all()
    sum_of_all = n * np.arange(elements) + n * (n - 1) // 2
    wrong = int((boxes[n % 2] != mine).sum() + (total != sum_of_all).sum())
    del boxes, here, there
    return wrong


def main():
    parser = argparse.ArgumentParser(description="Arrays go around a ring of processes.")
    parser.add_argument("elements", nargs="?", type=int, default=1000, help="of each array")
    elements = parser.parse_args().elements
    if not 1 <= elements <= 1 << 26:
        parser.error(f"elements is {elements}, allowed are 1 to {1 << 26}")
    try:
        if shmem.shmem_init(mem_size=16 * elements + (1 << 20)) != 0:
            sys.exit(f"ring_shift: {shmem.errors.last_error()}")
    except ValueError as error:  # neither oshrun nor torchrun started it
        parser.error(str(error))
    wrong = shift(elements)
    counts = shmem.tensor(1, "int64")
    counts[0] = wrong
    shmem.shmem_int64_sum_reduce(counts, counts, 1)
    if shmem.get_my_pe() == 0:
        verdict = "PASS" if counts[0] == 0 else f"FAIL: {counts[0]} wrong"
        n = shmem.get_pe_count()
        print(f"ring_shift: {n} process{'' if n == 1 else 'es'}, {elements} elements, {verdict}")
    failed = counts[0] != 0
    del counts
    shmem.shmem_finalize()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
