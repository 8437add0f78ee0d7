# SPDX-License-Identifier: Apache-2.0
"""A pool of memory: each process puts into the part of the next one, and reads its own.

    oshrun -n 2 python pool.py [STORE]        # STORE: tcp://127.0.0.1:8570

Shows Big Memory: every member sees the whole pool at the same addresses, copies go to and from any part,
one by one or many at once. Share Memory (``shm``) serves for the meetings.
"""

import argparse
import os
import sys

import numpy as np
from memfabric_hybrid import bm, shm

SLICE = 1 << 20  # bytes that each process gives
PIECES, PIECE = 64, 256


def check(code):
    if code != 0:
        sys.exit(f"pool: a call gave {code}")  # the library has said why


def use(pool, meeting, rank, ranks):
    """Whether all came as it was put."""
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    mine = pool.peer_rank_ptr(rank, bm.BmMemType.HOST)
    there = pool.peer_rank_ptr(after, bm.BmMemType.HOST)
    row = np.arange(1000, dtype=np.int32) + rank
    check(pool.copy_data(row, there, row.nbytes, bm.BmCopyType.H2G))
    # Pieces of one array to places that are apart, in one call.
    pieces = np.full(PIECES * PIECE, rank, np.uint8)
    sources = pieces.ctypes.data + np.arange(PIECES, dtype=np.uint64) * PIECE
    targets = there + 65536 + np.arange(PIECES, dtype=np.uint64) * 2 * PIECE
    sizes = np.full(PIECES, PIECE, np.uint64)
    check(pool.copy_data_batch(sources, targets, sizes, PIECES, bm.BmCopyType.H2G, 0))
    check(meeting.barrier())  # all have put
    got = np.zeros_like(row)
    check(pool.copy_data(mine, got, got.nbytes, bm.BmCopyType.G2H))
    back = np.zeros((PIECES, 2, PIECE), np.uint8)
    check(pool.copy_data(mine + 65536, back, back.nbytes, bm.BmCopyType.G2H))
    check(meeting.barrier())  # all have read
    is_row_right = np.array_equal(got, np.arange(1000) + before)
    return is_row_right and (back[:, 0] == before).all() and not back[:, 1].any()


def main():
    parser = argparse.ArgumentParser(description="Processes share a pool of memory.")
    parser.add_argument("store", nargs="?", default="tcp://127.0.0.1:8570")
    store = parser.parse_args().store
    if "RANK" not in os.environ:
        parser.error("start it by oshrun -n 2 python pool.py")
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    check(shm.initialize(store, ranks, rank, 0, shm.ShmConfig()))
    meeting = shm.create(0, ranks, rank, 0)
    check(bm.initialize(store, ranks, 0, bm.BmConfig(auto_ranking=False, rank_id=rank)))
    with bm.create(0, local_dram_size=SLICE, local_hbm_size=0) as pool:
        check(pool.join())
        check(meeting.barrier())  # all have joined
        is_right = use(pool, meeting, rank, ranks)
    if rank == 0 or not is_right:
        verdict = "PASS" if is_right else f"FAIL at rank {rank}"
        members = f"{ranks} member{'' if ranks == 1 else 's'}"
        print(f"pool: {members}, {ranks * SLICE} bytes, {verdict}", flush=True)
    meeting.destroy()
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
