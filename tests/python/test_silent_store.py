# SPDX-License-Identifier: Apache-2.0
"""Ends of what a process has at a store that is stopped: they wait for it once, for three seconds."""

import os
import signal
import time

import jobs
import pytest
from test_transfer_store import store_at

LIMIT_S = 3
BYTES = 1 << 21


def end_of_pools(store):
    from mf_smem import bm

    config = bm.BmConfig()
    config.auto_ranking = True
    config.start_store = False
    assert bm.initialize(store, 2, 0, config) == 0
    pools = [bm.create(number, BYTES, 0) for number in (1, 2)]
    for pool in pools:
        pool.join()

    def end():
        for pool in pools:
            pool.destroy()
        bm.uninitialize()

    return end


def end_of_spaces(store):
    from mf_smem import shm

    config = shm.ShmConfig()
    config.start_store = False
    assert shm.initialize(store, 1, 0, 0, config) == 0
    spaces = [shm.create(number, 1, 0, BYTES) for number in (1, 2)]

    def end():
        for space in spaces:
            space.destroy()
        shm.uninitialize()

    return end


def end_of_engines(store):
    from memfabric_hybrid import TransferEngine

    engines = [TransferEngine() for _ in range(2)]
    for engine in engines:
        assert engine.initialize(store, f"127.0.0.1:{jobs.free_port()}", "Both", 0) == 0

    def end():
        for engine in engines:
            engine.destroy()

    return end


def ends_without_the_store(rank, ranks):
    url = f"tcp://127.0.0.1:{jobs.free_port()}"
    with store_at(url) as store:
        end = globals()[os.environ["MEMSPAN_TEST_END"]](url)
        store.send_signal(signal.SIGSTOP)
        begin = time.monotonic()
        end()
        assert time.monotonic() - begin < LIMIT_S + 1


@pytest.mark.parametrize("end", [end_of_pools, end_of_spaces, end_of_engines])
def test_an_end_waits_once_for_a_silent_store(end):
    jobs.run(ends_without_the_store, 1, MEMSPAN_TEST_END=end.__name__)
