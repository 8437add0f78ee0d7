# SPDX-License-Identifier: Apache-2.0
"""A prefill process hands blocks of its KV cache to a decode process.

    python kv_blocks.py decode                            # says how to start the other one
    python kv_blocks.py prefill SESSION ADDRESS BLOCK...  # in another terminal

Shows ``memspan.mooncake``, which has the methods of Mooncake's engine: all pieces of all layers in one
call, and a note behind them. MEMSPAN_STORE says where the store is (tcp://127.0.0.1:8571).
"""

import argparse
import select
import shlex
import sys

import numpy as np
from memspan.mooncake import TransferEngine, TransferNotify, Write

LAYERS, BLOCKS, BLOCK = 4, 64, 4096  # of each cache; bytes


def check(code):
    if code != 0:
        sys.exit(f"kv_blocks: a call gave {code}")  # the library has said why


def start():
    """An engine, its cache, and what a model would compute for it: a value for each block."""
    engine = TransferEngine()
    check(engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", ""))
    cache = np.zeros((LAYERS, BLOCKS, BLOCK), np.uint8)
    check(engine.register_memory(cache.ctypes.data, cache.nbytes))
    values = (17 * np.arange(LAYERS)[:, None] + 3 * np.arange(BLOCKS) + 1) % 256
    return engine, cache, values[:, :, None]


def decode():
    engine, cache, values = start()
    free = [9, 4, 33, 60, 2]  # where the request's blocks shall go
    session = f"127.0.0.1:{engine.get_rpc_port()}"
    print(shlex.join(map(str, ["python", sys.argv[0], "prefill", session, cache.ctypes.data, *free])), flush=True)
    if not select.select([engine.get_engine().messages_fileno()], [], [], 60)[0]:
        sys.exit("kv_blocks: nobody wrote anything within 60 s")
    (note,) = engine.get_notifies()
    is_right = note.msg == "5 blocks" and (cache[:, free] == values[:, : len(free)]).all()
    print(f"kv_blocks: {note.name} brought {note.msg}, {'PASS' if is_right else 'FAIL'}", flush=True)
    return 0 if is_right else 1


def prefill(peer, address, theirs):
    engine, cache, values = start()
    cache[:] = values
    layers = np.arange(LAYERS)[:, None] * BLOCKS  # numbers of their first blocks
    mine = cache.ctypes.data + (layers + np.arange(len(theirs))).ravel() * BLOCK
    there = address + (layers + np.array(theirs)).ravel() * BLOCK
    note = TransferNotify("request 7", f"{len(theirs)} blocks")
    check(engine.batch_transfer_sync(peer, mine, there, np.full(len(mine), BLOCK), Write, note))
    print(f"kv_blocks: sent {len(mine)} pieces")
    return 0


def main():
    parser = argparse.ArgumentParser(description="KV blocks go from prefill to decode.")
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("decode")
    sender = roles.add_parser("prefill")
    sender.add_argument("session")
    sender.add_argument("address", type=int)
    sender.add_argument("block", type=int, nargs="+")
    given = parser.parse_args()
    if given.role == "decode":
        return decode()
    if not all(0 <= block < BLOCKS for block in given.block):
        parser.error(f"block is one of {given.block}, allowed are 0 to {BLOCKS - 1}")
    return prefill(given.session, given.address, given.block)


if __name__ == "__main__":
    sys.exit(main())
