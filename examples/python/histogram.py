# SPDX-License-Identifier: Apache-2.0
"""Counts samples in buckets that are spread over all processes: bucket b is at process b % n.

    oshrun -n 4 python histogram.py [SAMPLES [BUCKETS]]

Shows atomics on other processes' memory, and a collective that brings the counts together.
"""

import argparse
import sys

import numpy as np
import shmem


def samples_of(pe, samples, buckets):
    """What a process has counted; any process can make it again."""
    spread = np.random.default_rng(pe).normal(buckets / 2, buckets / 8, samples)
    return spread.astype(np.int64).clip(0, buckets - 1)


def count(samples, buckets):
    """All counts, by bucket, at every process."""
    me, n = shmem.get_my_pe(), shmem.get_pe_count()
    each = -(-buckets // n)
    counts = shmem.tensor(each, "int64")
    of_all = shmem.tensor((n, each), "int64")
    shmem.shmem_barrier_all()  # all counts are 0
    for bucket, times in zip(*np.unique(samples_of(me, samples, buckets), return_counts=True)):
        place = counts.ctypes.data + 8 * int(bucket // n)  # of this process, and so of any
        shmem.shmem_int64_atomic_add(place, int(times), int(bucket % n))
    shmem.shmem_barrier_all()  # everybody has added
    shmem.shmem_fcollect(of_all, counts, counts.nbytes)
    found = of_all.T.reshape(-1)[:buckets].copy()
    shmem.free(of_all)
    shmem.free(counts)
    return found


def main():
    parser = argparse.ArgumentParser(description="A histogram over all processes.")
    parser.add_argument("samples", nargs="?", type=int, default=10_000, help="of each process")
    parser.add_argument("buckets", nargs="?", type=int, default=64)
    given = parser.parse_args()
    for name, value, most in [("samples", given.samples, 1 << 24), ("buckets", given.buckets, 1 << 20)]:
        if not 1 <= value <= most:
            parser.error(f"{name} is {value}, allowed are 1 to {most}")
    try:
        if shmem.shmem_init(mem_size=1 << 25) != 0:
            sys.exit(f"histogram: {shmem.errors.last_error()}")
    except ValueError as error:  # neither oshrun nor torchrun started it
        parser.error(str(error))
    me, n = shmem.get_my_pe(), shmem.get_pe_count()
    found = count(given.samples, given.buckets)
    everything = np.concatenate([samples_of(pe, given.samples, given.buckets) for pe in range(n)])
    is_right = np.array_equal(found, np.bincount(everything, minlength=given.buckets))
    if me == 0 or not is_right:
        print(
            f"histogram: {n} process{'' if n == 1 else 'es'}, "
            f"{n * given.samples} samples in {given.buckets} buckets, "
            f"{'PASS' if is_right else f'FAIL at process {me}'}",
            flush=True,
        )
    shmem.shmem_finalize()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
