# SPDX-License-Identifier: Apache-2.0
"""Transfer engines whose store is killed and started again."""

import contextlib
import subprocess
import sys
import time

import jobs
import memfabric_hybrid
import numpy as np
from memspan.programs import path_of

BYTES = 1 << 16
RETURN_S = 20  # far longer than the longest pause between two attempts

# An engine with registered memory full of ones, until its input ends.
SERVER = """
import sys, memfabric_hybrid, numpy as np
store, name, size = sys.argv[1:]
engine = memfabric_hybrid.TransferEngine()
assert engine.initialize(store, name, "Both", 0) == 0, memfabric_hybrid.get_last_err_msg()
memory = np.ones(int(size), np.uint8)
assert engine.register_memory(memory.ctypes.data, memory.nbytes) == 0
print(memory.ctypes.data, flush=True)
sys.stdin.read()
engine.destroy()
"""


@contextlib.contextmanager
def engine(store, name):
    made = memfabric_hybrid.TransferEngine()
    assert made.initialize(store, name, "Both", 0) == 0, memfabric_hybrid.get_last_err_msg()
    try:
        yield made
    finally:
        made.destroy()


@contextlib.contextmanager
def serving(store, name):
    """The same in a process of its own; gives where its memory is."""
    command = [sys.executable, "-c", SERVER, store, name, str(BYTES)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield int(process.stdout.readline())
        finally:
            process.stdin.close()
            assert process.wait(jobs.LIMIT_S) == 0


@contextlib.contextmanager
def store_at(address):
    command = [path_of("memspan-store"), "--listen", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as store:
        try:
            assert "listening at" in store.stdout.readline()
            yield store
        finally:
            store.kill()


def read(reader, peer, address):
    target = np.zeros(BYTES, np.uint8)
    code = reader.transfer_sync_read(peer, target.ctypes.data, address, BYTES)
    assert code != 0 or target.all()
    return code


def await_read(reader, peer, address):
    """Until the peer has come back to the store."""
    limit = time.monotonic() + RETURN_S
    while (code := read(reader, peer, address)) != 0 and time.monotonic() < limit:
        time.sleep(0.01)
    assert code == 0, memfabric_hybrid.get_last_err_msg()


def test_engines_outlive_their_store():
    address = f"tcp://127.0.0.1:{jobs.free_port()}"
    prefill, decode, third = "127.0.0.1:6001", "127.0.0.1:6002", "127.0.0.1:6003"
    with contextlib.ExitStack() as stack:
        with store_at(address):
            there = stack.enter_context(serving(address, prefill))
            mine = stack.enter_context(engine(address, decode))
            memory = np.ones(BYTES, np.uint8)
            assert mine.register_memory(memory.ctypes.data, memory.nbytes) == 0
            assert read(mine, prefill, there) == 0, memfabric_hybrid.get_last_err_msg()
        for _ in range(200):
            assert read(mine, prefill, there) == 0, memfabric_hybrid.get_last_err_msg()
        stack.enter_context(store_at(address))
        begin = time.monotonic()
        late = stack.enter_context(engine(address, third))
        await_read(late, prefill, there)
        await_read(late, decode, memory.ctypes.data)
        print(f"a new engine transfers {time.monotonic() - begin:.3f} s after the store's return")
        for _ in range(200):
            assert read(mine, prefill, there) == 0, memfabric_hybrid.get_last_err_msg()
