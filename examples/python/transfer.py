# SPDX-License-Identifier: Apache-2.0
"""Moves an array from one process to another, which is told when it is there.

    python transfer.py receive                      # says how to start the other one
    python transfer.py send SESSION ADDRESS         # in another terminal

Shows ``TransferEngine``: named endpoints, memory that others may write to, and a request that carries a
message behind its data. ``--store`` is where the receiver hosts the store.
"""

import argparse
import shlex
import sys

import numpy as np
from memfabric_hybrid import TransferEngine, TransferOpcode

BYTES = 1 << 20
PATIENCE_MS = 60_000


def check(code):
    if code != 0:
        sys.exit(f"transfer: a call gave {code}")  # the library has said why


def receive(store):
    engine = TransferEngine()
    check(engine.initialize(store, "127.0.0.1", "Decode", 0, store_server_role="Decode"))
    memory = np.zeros(BYTES, np.uint8)
    check(engine.register_memory(memory.ctypes.data, memory.nbytes))
    names = [sys.argv[0], "--store", store, "send", engine.session_id]
    print(shlex.join(["python", *names, str(memory.ctypes.data)]), flush=True)
    message = engine.receive(PATIENCE_MS)
    if message is None:
        sys.exit(f"transfer: nobody sent anything within {PATIENCE_MS // 1000} s")
    is_right = int(memory.sum()) == int(message[1])  # which came after the bytes
    print(f"transfer: {BYTES} bytes of {message[0]}, {'PASS' if is_right else 'FAIL'}", flush=True)
    engine.destroy()
    return 0 if is_right else 1


def send(store, session, address):
    engine = TransferEngine()
    check(engine.initialize(store, "127.0.0.1", "Prefill", 0))
    check(engine.probe(session))
    source = np.random.default_rng().integers(0, 256, BYTES, np.uint8)
    pieces = range(0, BYTES, BYTES // 16)
    request = engine.prepare(
        TransferOpcode.Write,
        session,
        [source.ctypes.data + place for place in pieces],
        [address + place for place in pieces],
        [BYTES // 16] * 16,
    )
    check(request.set_message(str(int(source.sum())).encode()))
    check(request.post())
    check(request.wait(PATIENCE_MS))
    print(f"transfer: sent {request.result()[1]} pieces")
    request.destroy()
    engine.destroy()


def main():
    parser = argparse.ArgumentParser(description="Moves an array to another process.")
    parser.add_argument("--store", default="tcp://127.0.0.1:8570")
    roles = parser.add_subparsers(dest="role", required=True)
    roles.add_parser("receive")
    sender = roles.add_parser("send")
    sender.add_argument("session")
    sender.add_argument("address", type=int)
    given = parser.parse_args()
    if given.role == "receive":
        return receive(given.store)
    return send(given.store, given.session, given.address)


if __name__ == "__main__":
    sys.exit(main())
