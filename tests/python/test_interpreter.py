# SPDX-License-Identifier: Apache-2.0
"""What the interpreter asks of calls that wait: Ctrl-C, its end, other interpreters, pickling."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import jobs
import numpy as np
import pytest
import shmem
from memfabric_hybrid import TransferEngine

HEAP = 1 << 24
NOTICED_S = 0.1
TRIES = 3  # the machine may be busy with others
LONG_MS = 60000


def interrupt_when_asleep(thread_id, sent):
    """Ctrl-C once the thread sleeps: often enough that it is not for the GIL."""
    asleep = 0
    while asleep < 20:
        with open(f"/proc/self/task/{thread_id}/stat") as file:
            sleeps = file.read().rsplit(")", 1)[1].split()[0] == "S"
        asleep = asleep + 1 if sleeps else 0
        time.sleep(0.002)
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


def seconds_to_interrupt(wait):
    """How long after Ctrl-C ``wait()`` raises KeyboardInterrupt."""
    sent = []
    sender = threading.Thread(target=interrupt_when_asleep, args=(threading.get_native_id(), sent))
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        wait()
    noticed = time.monotonic()
    sender.join()
    return noticed - sent[0]


def check_interrupts(wait, tries=TRIES):
    took = []
    while not took or (took[-1] > NOTICED_S and len(took) < tries):
        took.append(seconds_to_interrupt(wait))
    assert took[-1] <= NOTICED_S, took


# ---- Ctrl-C


def start_that_waits_for_others(rank, ranks):
    check_interrupts(lambda: shmem.shmem_init(0, 2, HEAP))
    check_interrupts(lambda: shmem.shmem_init(1, 2, HEAP))
    assert shmem.shmem_init(0, 1, HEAP) == 0
    shmem.shmem_finalize()


def test_ctrl_c_ends_a_start():
    jobs.run(start_that_waits_for_others, 1)


def waits_of_shmem(rank, ranks):
    assert shmem.shmem_init(mem_size=HEAP) == 0
    flag = shmem.tensor(1, "int64")
    if rank == 0:
        check_interrupts(lambda: shmem.shmem_int64_wait_until(flag, shmem.CmpOp.CMP_EQ, 1))
        stream, word = shmem.Stream(), shmem.shmem_calloc(1, 4)
        shmem.shmem_signal_wait_until_on_stream(word, shmem.CmpOp.CMP_EQ, 1, stream)
        check_interrupts(stream.synchronize)
        shmem.shmem_signal_op(word, 1, shmem.SignalOp.SIGNAL_SET, 0)
        assert stream.synchronize() == 0
        # Only once: the team is out of step then, and every further call says so.
        check_interrupts(shmem.shmem_barrier_all, 1)
        with pytest.raises(shmem.errors.Error, match="interrupted"):
            shmem.shmem_barrier_all()
        shmem.shmem_int64_p(flag, 1, 1)
    else:
        word = shmem.shmem_calloc(1, 4)
        shmem.shmem_int64_wait_until(flag, shmem.CmpOp.CMP_EQ, 1)
    sys.stdout.flush()
    os._exit(0)  # no barrier would end any more


def test_ctrl_c_ends_waits_barriers_and_streams():
    jobs.run(waits_of_shmem, 2)


def waits_of_transfers(rank, ranks):
    nowhere = f"tcp://127.0.0.1:{jobs.free_port()}"
    check_interrupts(lambda: TransferEngine().initialize(nowhere, "127.0.0.1:6001", "Both", 0))
    engine = TransferEngine()
    url = os.environ["MEMSPAN_TEST_URL"]
    assert engine.initialize(url, "127.0.0.1:6001", "Both", 0, store_server_role="Both") == 0
    check_interrupts(lambda: engine.receive(LONG_MS))
    check_interrupts(lambda: engine.wait_counter(0, 1, LONG_MS))
    engine.destroy()


def test_ctrl_c_ends_waits_of_transfers():
    jobs.run(waits_of_transfers, 1)


def waits_of_pools(rank, ranks):
    from mf_smem import shm

    url = os.environ["MEMSPAN_TEST_URL"]
    assert shm.initialize(url, 2, 0, 0, shm.ShmConfig()) == 0
    check_interrupts(lambda: shm.create(0, 2, 0, 1 << 21), 1)
    os._exit(0)


def test_ctrl_c_ends_a_space_that_waits_for_its_ranks():
    jobs.run(waits_of_pools, 1)


def end_of_stop(pid):
    """Returns when the process is stopped."""
    while True:
        with open(f"/proc/{pid}/stat") as file:
            if file.read().rsplit(")", 1)[1].split()[0] == "T":
                return
        time.sleep(0.002)


def check_interrupts_of_all(stopped, *waits):
    """Each needs that process, which goes on afterwards; ends this one."""
    for wait in waits:
        print(wait.__code__.co_firstlineno, flush=True)  # what failed, if it fails
        try:
            check_interrupts(wait)
        except BaseException:
            os.kill(stopped, signal.SIGKILL)
            raise
    os.kill(stopped, signal.SIGCONT)
    os._exit(0)


def calls_that_need_a_stopped_peer(rank, ranks):
    os.environ["MEMSPAN_HOST_ID"] = f"host-of-{rank}"
    os.environ["MEMSPAN_SILENCE_LIMIT"] = "60s"
    assert shmem.shmem_init(mem_size=HEAP) == 0
    words = shmem.tensor(64, "int64")
    single = shmem.tensor(64, "float32")
    here = np.zeros(64, "int64")
    shmem.shmem_int64_p(words, os.getpid(), 1 - rank)
    shmem.shmem_barrier_all()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    peer = int(words[0])
    end_of_stop(peer)
    check_interrupts_of_all(
        peer,
        lambda: shmem.shmem_int64_g(words, 1),
        lambda: shmem.shmem_float_g(single, 1),
        lambda: shmem.shmem_getmem(here, words, 64, 1),
        lambda: shmem.shmem_int64_get(here, words, 8, 1),
        lambda: shmem.shmem_int64_iget(here, words, 1, 2, 8, 1),
        lambda: shmem.shmem_get64(here, words, 8, 1),
        lambda: shmem.shmem_iget64(here, words, 1, 2, 8, 1),
        lambda: shmem.shmem_int64_atomic_fetch(words, 1),
        lambda: shmem.shmem_int64_atomic_swap(words, 5, 1),
        lambda: shmem.shmem_int64_atomic_compare_swap(words, 5, 6, 1),
        lambda: shmem.shmem_int64_atomic_fetch_add(words, 1, 1),
        lambda: shmem.shmem_float_atomic_fetch(single, 1),
        lambda: (shmem.shmem_int64_p(words, 1, 1), shmem.shmem_quiet()),
    )


def test_ctrl_c_ends_small_calls_that_need_a_stopped_peer_of_another_host():
    jobs.run(calls_that_need_a_stopped_peer, 2)


def pools_that_need_a_stopped_peer(rank, ranks):
    from memspan.kv_pool import KvPool
    from mf_smem import bm

    os.environ["MEMSPAN_HOST_ID"] = f"host-of-{rank}"
    os.environ["MEMSPAN_SILENCE_LIMIT"] = "60s"
    url, host = os.environ["MEMSPAN_TEST_URL"], bm.BmMemType.HOST
    config = bm.BmConfig(auto_ranking=False, rank_id=rank, operation_timeout=60)
    assert bm.initialize(url, 2, 0, config) == 0
    blocks = KvPool(url, 8 << 20, largest_share=8 << 20, members=2)
    pool = bm.create(1, 1 << 20, 1 << 20)
    assert pool.join() == 0 and pool.wait_members(2) == 0
    engine = TransferEngine()
    assert engine.initialize(url, f"127.0.0.1:{6001 + rank}", "Both", 0) == 0
    here, block = np.zeros(1 << 20, np.uint8), np.zeros(1 << 16, np.uint8)
    address = here.ctypes.data
    assert engine.register_memory(here, here.nbytes) == 0
    assert blocks.put([b"%d %d" % (rank, i) for i in range(2)], [block, block]) == [True, True]
    there, own = pool.peer_rank_ptr(1 - rank, host), pool.peer_rank_ptr(rank, host)

    def send(*numbers):
        numbers = np.array(numbers, np.uint64)
        assert pool.copy_data(numbers, there, numbers.nbytes, bm.BmCopyType.H2G) == 0

    def received(count):
        numbers = np.zeros(count, np.uint64)
        while numbers[-1] == 0:
            assert pool.copy_data(own, numbers, numbers.nbytes, bm.BmCopyType.G2H) == 0
        return [int(number) for number in numbers]

    send(os.getpid(), address)
    pid, remote = received(2)
    peer = f"127.0.0.1:{6002 - rank}"
    # Everything is connected.
    assert engine.transfer_sync_write(peer, address, remote, 8) == 0
    assert blocks.get([b"%d 0" % (1 - rank)], [block]) == [True]
    send(pid, address, 1)
    received(3)
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    end_of_stop(pid)
    check_interrupts_of_all(
        pid,
        lambda: pool.copy_data(there, address, 64, bm.BmCopyType.G2H),
        lambda: pool.copy_data(there, address, 1 << 20, bm.BmCopyType.G2H),
        lambda: pool.copy_data_batch([there], [address], [64], 1, bm.BmCopyType.G2H, 0),
        lambda: blocks.get([b"1 1"], [block]),
        lambda: engine.transfer_sync_read(peer, address, remote, 64),
        lambda: engine.batch_transfer_sync_read(peer, [address], [remote], [64]),
    )


def test_ctrl_c_ends_copies_and_transfers_that_need_a_stopped_peer_of_another_host():
    jobs.run(pools_that_need_a_stopped_peer, 2)


def calls_from_signal_functions(rank, ranks):
    assert shmem.shmem_init(0, 1, HEAP) == 0
    flag = shmem.tensor(1, "int64")
    told = []

    def on_signal(number, frame):
        with pytest.raises(RuntimeError, match="signal's function"):
            shmem.shmem_finalize()
        told.append(number)
        shmem.shmem_int64_p(flag, 1, 0)  # what does not wait works

    signal.signal(signal.SIGINT, on_signal)
    sent = []
    sender = threading.Thread(target=interrupt_when_asleep, args=(threading.get_native_id(), sent))
    sender.start()
    shmem.shmem_int64_wait_until(flag, shmem.CmpOp.CMP_EQ, 1)
    sender.join()
    assert told == [signal.SIGINT]
    del flag
    shmem.shmem_finalize()


def test_a_signals_function_may_end_what_is_waited_for_but_not_the_job():
    jobs.run(calls_from_signal_functions, 1)


# ---- the interpreter's end


def run_python(text, *arguments):
    return subprocess.run(
        [sys.executable, "-c", text, *arguments], capture_output=True, text=True, timeout=jobs.LIMIT_S
    )


DAEMON = """
import sys, threading, shmem
from memfabric_hybrid import TransferEngine

assert shmem.shmem_init(0, 1, 1 << 24) == 0
flag = shmem.tensor(1, "int64")
entered = threading.Event()

def word():
    entered.set()
    shmem.shmem_int64_wait_until(flag, shmem.CmpOp.CMP_EQ, 1)

def receive():
    engine = TransferEngine()
    assert engine.initialize(sys.argv[2], "127.0.0.1:6001", "Both", 0, store_server_role="Both") == 0
    entered.set()
    engine.receive(60000)

def many():
    while True:
        shmem.shmem_barrier_all()
        entered.set()

threading.Thread(target=globals()[sys.argv[1]], daemon=True).start()
entered.wait(60)
print("the end")
"""


@pytest.mark.parametrize("call", ["word", "receive", "many"])
def test_the_interpreter_ends_while_a_daemon_thread_is_in_a_call(call):
    ended = run_python(DAEMON, call, f"tcp://127.0.0.1:{jobs.free_port()}")
    assert (ended.returncode, ended.stdout) == (0, "the end\n"), ended.stderr
    assert "terminate" not in ended.stderr and "Traceback" not in ended.stderr


def test_other_interpreters_are_refused():
    ended = run_python(
        "import sys\n"
        "try:\n    import _interpreters as interpreters\n"
        "except ImportError:\n    import _xxsubinterpreters as interpreters\n"
        "import shmem\n"
        "other = interpreters.create()\n"
        "try:\n    failure = interpreters.run_string(other, 'import shmem')\n"
        "except Exception as error:\n    failure = error\n"
        "print(failure)\n"
    )
    # Ours, or from 3.13 on Python's own.
    refusals = ("cannot be imported in a sub-interpreter", "does not support loading in subinterpreters")
    assert any(words in ended.stdout for words in refusals), ended.stdout + ended.stderr


# ---- what stands for something of this process


def test_engines_refuse_what_is_none_of_theirs():
    engine = TransferEngine()
    url = f"tcp://127.0.0.1:{jobs.free_port()}"
    with pytest.raises(ValueError, match="session_id has a NUL byte"):
        engine.initialize(url, "127.0.0.1:6001\0:1", "Both", 0, store_server_role="Both")
    assert engine.initialize(url, "127.0.0.1:6001", "Both", 0, store_server_role="Both") == 0
    memory = np.zeros(100, "uint8")
    there = memory.ctypes.data
    with pytest.raises(ValueError, match="opcode is 7, allowed are Read"):
        engine.prepare(7, "127.0.0.1:6001", [there], [there], [8])
    with pytest.raises(TypeError, match="a function, or None"):
        engine.set_peer_down_callback(5)
    with pytest.raises(ValueError, match="read-only"):
        engine.register_memory(bytes(100), 100)
    memory.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        engine.register_memory(memory, memory.nbytes)
    with pytest.raises(ValueError, match="read-only"):
        engine.transfer_sync_read("127.0.0.1:6001", memory, there, 8)
    with pytest.raises(ValueError, match="NUL"):
        engine.transfer_sync_write("127.0.0.1:6001\0", there, there, 8)
    engine.destroy()


def test_engines_cannot_be_pickled_or_copied():
    engine = TransferEngine()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="TransferEngine .*this process"):
            copied(engine)
