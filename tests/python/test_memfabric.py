# SPDX-License-Identifier: Apache-2.0
"""MemFabric's packages among processes."""

import array
import ctypes
import mmap
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import jobs
import memfabric_hybrid
import mf_adapter
import mf_smem
import numpy as np
import pytest
import shmem
from jobs import hosts
from memspan import Error, mooncake
from memspan.fabric.engine import TransferRequest
from needs import needs

SLICE = 1 << 20
NO_RANK = 2**32 - 1


def url():
    return os.environ["MEMSPAN_TEST_URL"]


def shared_space(rank, ranks):
    """A space of Share Memory, for its barriers."""
    config = mf_smem.shm.ShmConfig()
    assert mf_smem.shm.initialize(url(), ranks, rank, 0, config) == 0, mf_smem.get_last_err_msg()
    return mf_smem.shm.create(63, ranks, rank, 0)


# ---- Big Memory


def use_pool(rank, ranks):
    bm = mf_smem.bm
    space = shared_space(rank, ranks)
    config = bm.BmConfig()
    config.auto_ranking = False
    config.rank_id = rank
    assert mf_smem.initialize() == 0
    assert bm.initialize(url(), ranks, 0, config) == 0, mf_smem.get_last_err_msg()
    assert bm.bm_rank_id() == rank
    pool = bm.create(1, SLICE, SLICE // 2)
    assert pool.join() == 0
    assert pool.local_mem_size() == SLICE // 2
    assert pool.local_mem_size(bm.BmMemType.HOST) == SLICE
    assert space.barrier() == 0
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    there = pool.peer_rank_ptr(after, bm.BmMemType.HOST)
    here = pool.peer_rank_ptr(rank, bm.BmMemType.HOST)
    assert pool.get_rank_id_by_gva(there) == after
    mine = np.full(1000, rank, np.int32)
    assert pool.copy_data(mine, there, mine.nbytes, bm.BmCopyType.H2G) == 0
    assert space.barrier() == 0
    got = np.zeros(1000, np.int32)
    assert pool.copy_data(here, got.ctypes.data, got.nbytes, bm.BmCopyType.G2H) == 0
    assert (got == before).all()
    # Batches: lists and arrays, in the background, and by element.
    sources = [mine.ctypes.data + 400 * i for i in range(10)]
    targets = [there + 8192 + 400 * i for i in range(10)]
    assert pool.copy_data_batch(sources, targets, [400] * 10, 10, bm.BmCopyType.AUTO, 0) == 0
    arrays = [np.array(numbers, np.uint64) for numbers in (sources, targets, [400] * 10)]
    assert pool.copy_data_batch(*arrays, 10, bm.BmCopyType.H2G, 1) == 0
    assert pool.wait() == 0
    code, codes = pool.copy_data_batch_partial_succeed(
        sources[:2], [targets[0], 5], [400] * 2, 2, bm.BmCopyType.H2G
    )
    assert code != 0 and codes[0] == 0 and codes[1] != 0
    mf_smem.raise_on_error(True)
    with pytest.raises(Error) as raised:
        pool.copy_data_batch_partial_succeed(
            sources[:2], [targets[0], 5], [400] * 2, 2, bm.BmCopyType.H2G
        )
    assert (raised.value.code, raised.value.results) == (code, codes)
    with pytest.raises(Error) as raised:
        pool.copy_data(5, targets[0], 400, bm.BmCopyType.H2G)
    assert raised.value.results is None
    mf_smem.raise_on_error(False)
    assert space.barrier() == 0
    rows = bm.CopyData2DParams(here + 8192, 400, got.ctypes.data, 100, 100, 10)
    assert pool.copy_data_2d(rows, bm.BmCopyType.G2H) == 0
    assert (got[:250] == before).all()
    # What does not fit is refused, and nothing is read beyond a list.
    with pytest.raises(ValueError, match="count is 11, but there are 10"):
        pool.copy_data_batch(sources, targets, [400] * 10, 11, bm.BmCopyType.H2G, 0)
    with pytest.raises(ValueError, match="src_ptr has 4000 bytes"):
        pool.copy_data(mine, there, 4001, bm.BmCopyType.H2G)
    with pytest.raises(ValueError, match="read-only"):
        pool.copy_data(here, b"12345678", 8, bm.BmCopyType.G2H)
    assert pool.copy_data(here, there, 8, 77) == -2000
    assert "type invalid: 77" in mf_smem.get_last_err_msg()
    assert mf_smem.get_error_string(-2000) == "invalid parameter"
    assert mf_smem.get_last_err_code() == -2000
    assert mf_smem.get_and_clear_last_err_msg() != "" and mf_smem.get_last_err_msg() == ""
    assert pool.register(mine, mine.nbytes) == 0
    assert pool.unregister(mine) == 0
    assert space.barrier() == 0
    assert pool.leave() == 0
    pool.destroy()
    bm.uninitialize()
    assert bm.bm_rank_id() == NO_RANK
    assert space.barrier() == 0


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_pool(ranks):
    jobs.run(use_pool, ranks)


def wait_for_members(rank, ranks):
    bm = mf_smem.bm
    space = shared_space(rank, ranks)
    assert bm.initialize(url(), ranks, 0, bm.BmConfig(auto_ranking=False, rank_id=rank)) == 0
    with bm.create(1, SLICE, 0) as pool:
        assert pool.wait_members(1, 0) != 0 and "has not joined" in mf_smem.get_last_err_msg()
        if rank == 0:
            assert pool.join() == 0
            assert pool.wait_members(2, timeout_ms=50) == -2004
            assert "1 of 2 members are in the pool (0)" in mf_smem.get_last_err_msg()
            assert pool.wait_rank(1, 0) == -2004
            # Another thread of Python runs while this one waits, and a signal ends the wait.
            threading.Timer(0.1, signal.raise_signal, (signal.SIGINT,)).start()
            with pytest.raises(KeyboardInterrupt):
                pool.wait_members(2)
            assert space.barrier() == 0
            assert pool.wait_members(2) == 0 and pool.wait_rank(1) == 0
            there = pool.peer_rank_ptr(1, bm.BmMemType.HOST)
            assert pool.copy_data(b"12345678", there, 8, bm.BmCopyType.H2G) == 0
        else:
            assert space.barrier() == 0
            assert pool.join() == 0
        assert space.barrier() == 0


def test_members_are_waited_for():
    jobs.run(wait_for_members, 2)


def create2(rank, ranks):
    bm = memfabric_hybrid.bm
    space = shared_space(rank, ranks)
    assert bm.initialize(url(), ranks, 0, bm.BmConfig()) == 0
    rank_there = bm.bm_rank_id()
    memory = os.memfd_create("test")
    os.ftruncate(memory, SLICE)
    with bm.create2(
        0, local_dram_size=SLICE if rank_there == 0 else 0, max_dram_size=SLICE, tag="a",
        tag_op_info="a:DEVICE_SDMA:a", shm_fd=memory if rank_there == 0 else -1,
    ) as pool:
        assert pool.join() == 0, memfabric_hybrid.get_last_err_msg()
        assert space.barrier() == 0
        place = pool.peer_rank_ptr(0, bm.BmMemType.HOST)
        assert pool.copy_data(b"hello", place, 5, bm.BmCopyType.H2G) == 0
        assert space.barrier() == 0
        if rank_there == 0:
            assert os.pread(memory, 5, 0) == b"hello"
        assert space.barrier() == 0
    with pytest.raises(RuntimeError, match="create bm handle failed"):
        bm.create(0, 0, 0)
    with pytest.raises(ValueError, match="tag has 40 characters"):
        bm.create2(1, SLICE, SLICE, tag="a" * 40)


def test_pools_of_different_contributions():
    jobs.run(create2, 2)


def test_configurations_that_cannot_be():
    bm = mf_smem.bm
    config = bm.BmConfig(init_timeout=0)
    assert bm.initialize("tcp://127.0.0.1:9", 2, 0, config) == -2000
    assert "initTimeout is zero" in mf_smem.get_last_err_msg()
    config = bm.BmConfig()
    config.hcom_url = "x" * 64
    with pytest.raises(ValueError, match="nic has 64 characters"):
        bm.initialize("tcp://127.0.0.1:9", 2, 0, config)
    config.set_nic("tcp://10.0.0.1:0")
    assert config.hcom_url == "tcp://10.0.0.1:0"
    assert bm.initialize("nonsense", 2, 0, bm.BmConfig()) == -2000


# ---- Share Memory


def use_space(rank, ranks):
    shm = memfabric_hybrid.shm
    assert shm.initialize(url(), ranks, rank, 0, shm.ShmConfig()) == 0
    space = shm.create(0, ranks, rank, 4096)
    assert (space.local_rank, space.rank_size) == (rank, ranks)
    assert space.query_support_data_operation() & shm.ShmDataOpType.MTE
    many = bytes(2**32 + 8)  # not one that a number of 32 bits makes of it
    with pytest.raises(ValueError, match="context has 4294967304 bytes"):
        space.set_context(many)
    with pytest.raises(ValueError, match="local_data has 4294967304 bytes"):
        space.all_gather(many)
    with pytest.raises(ValueError, match="local_data has 4294967304 bytes"):
        space.subgroup_all_gather("many", 1, 0, many)
    with pytest.raises(Error, match="must be 1~65536, not 65537"):
        space.all_gather(bytes(65537))
    del many
    assert space.all_gather(bytes([rank] * 3)) == b"".join(bytes([r] * 3) for r in range(ranks))
    assert space.barrier() == 0
    mte = shm.ShmDataOpType.MTE
    for other in range(ranks):
        are_near = hosts.are_near(rank, other, ranks)
        assert (mte in space.topology_can_reach(other)) == are_near
        for ways in [0], np.zeros(1, np.uint32):
            assert space.topology_can_reach(other, ways) == 0
            assert (ways[0] & int(mte) != 0) == are_near
    assert space.set_context(b"context") == 0 and space.get_context() == b"context"
    group = f"parity {rank % 2}"
    members = [r for r in range(ranks) if r % 2 == rank % 2]
    place = members.index(rank)
    assert space.subgroup_barrier(group, len(members), place) == 0
    assert space.subgroup_all_gather(group, len(members), place, bytes([rank])) == bytes(members)
    mine = space.atomic_alloc_value(ranks)
    assert sorted(space.all_gather(bytes([mine]))) == list(range(ranks))
    with pytest.raises(RuntimeError, match="taken|all"):
        space.atomic_alloc_value(ranks)
    assert space.barrier() == 0
    assert space.atomic_release_value(mine) == 0
    told = threading.Event()
    status = []
    assert space.register_exit(lambda code: (status.append(code), told.set())) == 0
    assert space.barrier() == 0
    if rank == 0:
        space.global_exit(5)
    assert told.wait(30) and status == [5]
    assert space.barrier() == 0
    assert space.destroy() == 0
    shm.uninitialize()


def test_a_space():
    jobs.run(use_space, 3)


def gather_alone(rank, ranks):
    shm = mf_smem.shm
    config = shm.ShmConfig(operation_timeout=1)
    assert shm.initialize(url(), ranks, rank, 0, config) == 0
    space = shm.create(0, ranks, rank, 0)
    if rank == 0:
        with pytest.raises(TimeoutError, match="timeout"):
            space.all_gather(b"x")
    # The other one stays until then.
    with open(os.environ["MEMSPAN_TEST_FIFO"], "wb" if rank == 0 else "rb") as fifo:
        fifo.write(b"x") if rank == 0 else fifo.read()
    space.destroy()


def test_a_gathering_of_not_all_is_an_exception(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    jobs.run(gather_alone, 2, MEMSPAN_TEST_FIFO=str(tmp_path / "fifo"))


# ---- transfers


def use_engine(rank, ranks):
    engine_type = memfabric_hybrid.TransferEngine
    space = shared_space(rank, ranks)
    engine = engine_type()
    assert engine.transfer_sync_write("127.0.0.1:1", 1, 1, 1) == -1
    assert "not initialized" in memfabric_hybrid.get_last_err_msg()
    session = f"127.0.0.1:{engine.get_rpc_port()}"  # before initialize, as SGLang does
    assert engine.initialize(url(), session, "Boss", 0) == -1
    assert "Prefill" in memfabric_hybrid.get_last_err_msg()
    role = "Prefill" if rank == 0 else "Decode"
    sdma = engine_type.TransDataOpType.SDMA
    assert engine.initialize(url(), session, role, 0, sdma) == 0
    memory = np.full(100_000, rank + 1, np.uint8)
    assert engine.register_memory(memory.ctypes.data, memory.nbytes) == 0
    mine = f"{session} {memory.ctypes.data}".encode().ljust(64)
    everybody = space.all_gather(mine)
    names = [everybody[64 * r : 64 * (r + 1)].decode().split() for r in range(ranks)]
    if rank == 0:
        for peer, address in ((name, int(address)) for name, address in names[1:]):
            here = memory.ctypes.data
            assert engine.probe(peer) == 0
            assert engine.transfer_sync_write(peer, here, address, 1000) == 0
            assert engine.transfer_sync_read(peer, here + 50_000, address + 1000, 8) == 0
            assert memory[50_000] == 2
            pieces = range(2000, 3000, 10)
            lists = [[here + p for p in pieces], [address + p for p in pieces], [5] * 100]
            assert engine.batch_transfer_sync_write(peer, *lists) == 0
            arrays = [np.array(numbers, np.uint64) for numbers in lists]
            assert engine.batch_transfer_sync_write(peer, *arrays) == 0
            assert engine.batch_transfer_sync_write(peer, lists[0], lists[1], [5]) == -1
            assert "must be equal" in memfabric_hybrid.get_last_err_msg()
            with pytest.raises(TypeError):
                engine.batch_transfer_sync_write(peer, ["a"], [1], [1])
            # Requests, a message and a counter behind the data.
            request = engine.prepare(
                memfabric_hybrid.TransferOpcode.Write, peer, [here], [address + 5000], [100]
            )
            assert isinstance(request, TransferRequest)
            assert request.set_message(b"done") == 0 and request.set_counter(3, 2) == 0
            assert request.post() == 0 and request.wait(30_000) == 0
            assert request.result() == (0, 1)
            assert request.cancel() == 0
            assert engine.transfer_sync_write(peer, here, 4096, 8) < 0
        assert engine.probe("127.0.0.1:1") < 0
    else:
        sender, message = engine.receive(30_000)
        assert (sender, message) == (names[0][0], b"done")
        assert engine.wait_counter(3, 2, 30_000) == 0 and engine.counter(3) == 2
        assert engine.receive() is None
        assert memory[5000] == 1 and memory[2004] == 1 and memory[2005] == 2
    assert space.barrier() == 0
    assert engine.unregister_memory(memory.ctypes.data) == 0
    engine.unInitialize()
    assert space.barrier() == 0


def test_transfers():
    jobs.run(use_engine, 2, MEMSPAN_TRANS_WAIT="1")


def adopted_arrays(rank, ranks):
    space = shared_space(rank, ranks)
    engine = memfabric_hybrid.TransferEngine()
    assert engine.initialize(url(), "127.0.0.1", "Both", 0) == 0
    memory = np.full(3 << 20, rank + 1, np.uint8)  # in a mapping of its own, not at a page's beginning
    assert memory.ctypes.data % 4096 != 0
    small = np.full(3 << 19, 7, np.uint8)
    lists = [[memory.ctypes.data, small.ctypes.data], [memory.nbytes, small.nbytes]]
    assert engine.batch_register_memory(*lists, adopt=True) == 0, memfabric_hybrid.get_last_err_msg()
    assert engine.register_memory(memory.ctypes.data, memory.nbytes, adopt=True) == 0
    assert engine.register_memory(memory.ctypes.data + 1, 1, adopt=True) < 0
    assert "only the very same range" in memfabric_hybrid.get_last_err_msg()
    # All or none: the last one cannot be adopted.
    other = np.full(1 << 20, 5, np.uint8)
    places = [other.ctypes.data, small.ctypes.data + 1], [other.nbytes, 1]
    assert engine.batch_register_memory(*places, adopt=True) < 0
    assert engine.register_memory(other.ctypes.data + 1, 100) == 0, "nothing is left of it"
    assert engine.unregister_memory(other.ctypes.data + 1) == 0
    mf_smem.raise_on_error(True)
    try:
        with pytest.raises(Error, match="only the very same range"):
            engine.batch_register_memory(*places, adopt=True)
    finally:
        mf_smem.raise_on_error(False)
    with pytest.raises(TypeError):
        engine.batch_register_memory([other.ctypes.data, None], [other.nbytes, 1], adopt=True)
    assert engine.register_memory(other.ctypes.data + 1, 100) == 0, "nothing is left of it"
    assert engine.batch_register_memory([], [], adopt=True) == engine.batch_register_memory([], []) < 0
    memory[5] = 99
    mine = f"{engine.session_id} {memory.ctypes.data}".encode().ljust(64)
    everybody = space.all_gather(mine)
    peer, there = everybody[64 * (1 - rank) : 64 * (2 - rank)].decode().split()
    got = np.zeros(memory.nbytes, np.uint8)
    assert engine.transfer_sync_read(peer, got.ctypes.data, int(there), got.nbytes) == 0
    assert got[5] == 99 and (np.delete(got, 5) == 2 - rank).all()
    with open("/proc/self/maps") as maps:
        mapped = [line for line in maps if "memspan-adopted" in line and "rw-s" in line]
    own = {line.split()[4] for line in mapped if int(line.split("-")[0], 16) <= memory.ctypes.data}
    assert own
    assert (len({line.split()[4] for line in mapped}) > 2) == hosts.are_near(0, 1, ranks)
    assert space.barrier() == 0
    assert engine.transfer_sync_write(peer, got.ctypes.data, int(there), 100) == 0
    assert space.barrier() == 0
    assert memory[0] == rank + 1 and memory[5] == 99
    for _ in range(2):
        assert engine.unregister_memory(memory.ctypes.data) == 0
    assert memory[5] == 99 and (memory[100:] == rank + 1).all() and (small == 7).all()
    assert space.barrier() == 0
    assert engine.transfer_sync_write(peer, got.ctypes.data, int(there), 1) < 0
    assert space.barrier() == 0
    engine.destroy()
    with open("/proc/self/maps") as maps:
        assert not any("memspan-adopted" in line for line in maps)
    assert (small == 7).all()
    assert space.barrier() == 0


@needs("userfaultfd")
def test_adopted_arrays():
    jobs.run(adopted_arrays, 2, MEMSPAN_TRANS_WAIT="0")


def unregister_many(rank, ranks):
    engine = memfabric_hybrid.TransferEngine()
    assert engine.initialize(url(), "127.0.0.1", "Both", 0, store_server_role="Both") == 0
    memory = np.zeros(1 << 20, np.uint8)
    begin = memory.ctypes.data

    def read(address):
        return engine.transfer_sync_read(engine.session_id, begin + 9000, address, 64)

    for raises in (False, True):
        assert engine.batch_register_memory([begin, begin + 4096], [64, 64]) == 0
        assert read(begin) == read(begin + 4096) == 0
        mf_smem.raise_on_error(raises)
        try:
            if raises:
                with pytest.raises(Error, match="address"):
                    engine.batch_unregister_memory([begin, 0, begin + 4096])
            else:
                assert engine.batch_unregister_memory([begin, 0, begin + 4096]) == -2000
        finally:
            mf_smem.raise_on_error(False)
        assert read(begin) < 0 and read(begin + 4096) < 0


def test_a_batch_unregisters_all_it_can():
    jobs.run(unregister_many, 1, MEMSPAN_TRANS_WAIT="0")


def shared_pool():
    assert mf_smem.bm.initialize(url(), 8, 0, mf_smem.bm.BmConfig()) == 0
    return mf_smem.bm.create(0, 1 << 20, 0)


def drop_engines_in_callbacks(rank, ranks):
    space = shared_space(rank, ranks)
    engine = memfabric_hybrid.TransferEngine()
    assert engine.initialize(url(), "127.0.0.1", "Both", 0) == 0
    name = engine.session_id
    peer = space.all_gather(name.encode().ljust(64))[64 * (1 - rank) :][:64].decode().strip()
    if rank == 1:
        assert space.barrier() == 0
        engine.destroy()
        assert space.barrier() == 0
        return
    assert engine.probe(peer) == 0
    engines, dropped = [engine], threading.Event()

    def drop(*_):
        engines.clear()
        dropped.set()

    def drop_and_raise(*_):
        destroy()
        drop()
        raise InterruptedError

    def is_free():
        end = time.monotonic() + 30
        successor = memfabric_hybrid.TransferEngine()
        while successor.initialize(url(), name, "Both", 0) != 0:
            assert time.monotonic() < end, memfabric_hybrid.get_last_err_msg()
        return successor

    refused = []

    def destroy(*_):
        for owner in engines:
            try:
                owner.destroy()
            except RuntimeError as error:
                refused.append(str(error))

    def destroy_and_drop(*_):
        destroy()
        drop()

    assert engine.set_peer_down_callback(destroy_and_drop) == 0
    del engine
    assert space.barrier() == 0
    assert dropped.wait(30)
    assert len(refused) == 1 and "cannot be destroyed by its own callback" in refused[0]
    # By a signal's function, which runs while another call waits.
    engines.append(is_free())
    other = memfabric_hybrid.TransferEngine()
    assert other.initialize(url(), "127.0.0.1", "Both", 0) == 0
    signal.signal(signal.SIGALRM, drop_and_raise)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(InterruptedError):
        other.wait_counter(0, 1)
    assert len(refused) == 2 and "in a signal's function" in refused[1]
    is_free().destroy()
    # What a signal's function may not end stays, whatever it is.
    request = other.prepare(memfabric_hybrid.TransferOpcode.Read, peer, [4096], [4096], [1])
    engines += [shared_pool(), shmem.Stream(), request, space]
    handles = [owner._handle for owner in engines]
    kept = []

    def destroy_and_raise(*_):
        destroy()
        kept.extend(owner._handle for owner in engines)
        raise InterruptedError

    signal.signal(signal.SIGALRM, destroy_and_raise)
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    with pytest.raises(InterruptedError):
        other.wait_counter(0, 1)
    assert len(refused) == 6 and kept == handles and 0 not in kept
    assert space.barrier() == 0


def test_an_engine_ends_that_is_dropped_in_a_callback():
    jobs.run(drop_engines_in_callbacks, 2)


class Layer:
    """Of a tensor, what KvWorker.register uses."""

    shape = (64,)

    def __init__(self, address):
        self._address = address

    def data_ptr(self):
        return self._address

    def stride(self):
        return (1,)

    def element_size(self):
        return 1

    def untyped_storage(self):
        return self


def register_no_cache(rank, ranks):
    from memspan.connectors import paged

    paged.regions_of = lambda tensor, *_: [paged.Region(tensor.data_ptr(), 1, 0, 1, 1, 0)]
    worker = paged.KvWorker(url(), "127.0.0.1", True)
    memory = np.zeros(1 << 20, np.uint8)
    begin = memory.ctypes.data
    worker.register_memory(begin + 9000, 64)
    for raises in (True, False):
        mf_smem.raise_on_error(raises)
        with pytest.raises(Error, match="address"):
            worker.register({"good": Layer(begin), "bad": Layer(0)}, 64)
        assert worker.layers == {}
        with pytest.raises(ValueError, match="registered no cache yet"):
            worker.directory
        with pytest.raises(Error):
            worker.read_bytes(worker.name, begin + 9000, begin, 64)
        # Memory that cannot be adopted is registered as it is: a page of a file.
        with open("/proc/self/exe", "rb") as file, mmap.mmap(file.fileno(), 4096, prot=mmap.PROT_READ) as page:
            worker.register_memory(np.frombuffer(page, np.uint8).ctypes.data, 64, adopt=True)
    mf_smem.raise_on_error(False)
    worker.register({"good": Layer(begin)}, 64)
    worker.read_bytes(worker.name, begin + 9000, begin, 64)
    assert list(worker.layers) == ["good"] and worker.directory


def test_a_worker_registers_all_its_caches_or_none():
    jobs.run(register_no_cache, 1, MEMSPAN_TRANS_WAIT="0")


def streams_and_memory(rank, ranks):
    import shmem

    engine = mf_adapter.TransferEngine()
    space = shared_space(rank, ranks)
    # vllm-ascend's order: the host's name first, the port afterwards.
    assert (
        engine.initialize(url(), "127.0.0.1", "Both", 0, store_server_role="Prefill") == 0
    )
    mine = engine.trans_malloc(4096)
    assert mine != 0
    name = f"127.0.0.1:{engine.get_rpc_port()}"
    assert name == engine.session_id
    everybody = space.all_gather(f"{name} {mine}".encode().ljust(64))
    peer, there = everybody[64 * (1 - rank) :].split()[:2]
    data = array.array("Q", [rank + 7] * 8)
    with shmem.Stream() as stream:
        args = (peer.decode(), data.buffer_info()[0], int(there), 64, stream)
        assert engine.transfer_async_write_submit(*args) == 0
        assert stream.synchronize() == 0
    assert space.barrier() == 0
    got = bytearray(8)
    assert engine.transfer_sync_read(name, got, mine, 8) == 0
    assert int.from_bytes(got, "little") == 1 - rank + 7
    assert space.barrier() == 0
    assert engine.trans_free(mine) == 0
    # The device's memory is the host's where no other device was chosen.
    of_device = engine.trans_device_malloc(8)
    assert of_device != 0
    assert engine.transfer_sync_write(name, got, of_device, 8) == 0
    assert ctypes.string_at(of_device, 8) == got
    assert engine.trans_free(of_device) == 0
    assert engine.trans_free(of_device) != 0
    engine.destroy()


def test_streams_and_library_memory():
    jobs.run(streams_and_memory, 2)


def as_mooncake(rank, ranks):
    space = shared_space(rank, ranks)
    os.environ["MEMSPAN_STORE"] = url()
    engine = mooncake.TransferEngine()
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "carrier pigeon", "") == -1
    assert engine.initialize("127.0.0.1", "P2PHANDSHAKE", "tcp", "") == 0
    session = f"127.0.0.1:{engine.get_rpc_port()}"
    memory = np.full(1 << 16, rank, np.uint8)
    assert engine.batch_register_memory([memory.ctypes.data], [memory.nbytes]) == 0
    everybody = space.all_gather(f"{session} {memory.ctypes.data}".encode().ljust(64))
    peer, there = everybody[64 * (1 - rank) :].split()[:2]
    peer = peer.decode()
    assert engine.send_probe(peer) == 0

    def write(thread):
        place = thread * 4096
        for _ in range(50):
            assert (
                engine.batch_transfer_sync_write(
                    peer, [memory.ctypes.data + 32768] * 4, [int(there) + place + 64 * i for i in range(4)], [64] * 4
                )
                == 0
            )

    threads = [threading.Thread(target=write, args=(i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert space.barrier() == 0
    assert (memory[:256] == 1 - rank).all()
    assert space.barrier() == 0
    assert engine.batch_unregister_memory([memory.ctypes.data]) == 0
    assert engine.get_engine() is not None


def test_mooncakes_methods_from_many_threads():
    jobs.run(as_mooncake, 2)


def in_background(rank, ranks):
    space = shared_space(rank, ranks)
    engine = mooncake.TransferEngine()
    assert engine.batch_transfer_async_write("127.0.0.1:1", [1], [1], [1]) == 0
    assert "not initialized" in memfabric_hybrid.get_last_err_msg()
    assert engine.initialize_ext("localhost", url(), "tcp", "", "http") == 0
    session = f"localhost:{engine.get_rpc_port()}"
    memory = engine.allocate_managed_buffer(1 << 16)
    assert memory != 0
    assert engine.write_bytes_to_buffer(memory, bytes([rank + 1]) * 1000, 1000) == 0
    everybody = space.all_gather(f"{session} {memory}".encode().ljust(64))
    peer, there = everybody[64 * (1 - rank) :].split()[:2]
    peer, there = peer.decode(), int(there)
    assert space.barrier() == 0
    if rank == 0:
        batches = [
            engine.batch_transfer_async_write(
                peer, [memory + 10 * i, memory], [there + 2000 + 100 * i, there + 4000 + i], [10, 1]
            )
            for i in range(10)
        ]
        batches.append(engine.batch_transfer_async_read(peer, [memory + 5000], [there], [1000]))
        assert len(set(batches)) == 11 and 0 not in batches
        assert engine.get_batch_transfer_status(batches) == 0
        assert engine.read_bytes_from_buffer(memory + 5000, 1000) == b"\2" * 1000
        assert engine.get_batch_transfer_status(batches[:1]) == -1  # known no longer
        assert f"no batch {batches[0]}" in memfabric_hybrid.get_last_err_msg()
        one = engine.transfer_submit_write(peer, memory, there + 6000, 8)
        while (state := engine.transfer_check_status(one)) == 0:
            pass
        assert state == 1 and engine.transfer_check_status(one) == -1
        # What fails does so at the end, and leaves the others.
        nowhere = engine.batch_transfer_async(peer, [memory], [4096], [8], mooncake.Write)
        assert nowhere != 0 and engine.get_batch_transfer_status([nowhere]) == -1
        nowhere = engine.transfer_submit_write(peer, memory, 4096, 8)
        while (state := engine.transfer_check_status(nowhere)) == 0:
            pass
        assert state == -1
        nowhere = engine.transfer_submit_write(peer, memory, 4096, 8)
        mf_smem.raise_on_error(True)
        with pytest.raises(Error, match="registered"):
            while engine.transfer_check_status(nowhere) == 0:
                pass
        with pytest.raises(Error, match="no batch"):
            engine.transfer_check_status(nowhere)
        mf_smem.raise_on_error(False)
        assert engine.batch_transfer_async_write(peer, [memory], [there], []) == 0
        # Who is told sees the bytes.
        told = mooncake.TransferNotify("request 7", "layer 3: ü")
        assert engine.transfer_sync(peer, memory, there + 7000, 8, mooncake.Write, told) == 0
        pieces = [memory, memory], [there + 7008, there + 7016], [8, 8]
        assert engine.batch_transfer_sync(peer, *pieces, mooncake.TransferOpcode.Write, told) == 0
        assert engine.batch_transfer_sync(peer, *pieces, mooncake.Write) == 0
        told.msg = "x" * 300
        assert engine.batch_transfer_sync(peer, *pieces, mooncake.Write, told) == -1
        assert "allowed are up to 255" in memfabric_hybrid.get_last_err_msg()
        assert engine.get_notifies() == []
        request = engine.get_engine().prepare(mooncake.Write, peer, [memory], [there], [8])
        assert request.set_message(b"plain") == 0 and request.post() == 0
        assert request.wait(30_000) == 0
        space.all_gather(session.encode().ljust(64))
    else:
        heard = []
        while len(heard) < 3:
            heard += engine.get_notifies()
        assert heard[:2] == [mooncake.TransferNotify("request 7", "layer 3: ü")] * 2
        assert heard[2] == mooncake.TransferNotify(peer, "plain")
        assert engine.read_bytes_from_buffer(memory + 7000, 24) == b"\1" * 24
        for i in range(10):
            assert engine.read_bytes_from_buffer(memory + 2000 + 100 * i, 11) == b"\1" * 10 + b"\0"
        assert engine.read_bytes_from_buffer(memory + 4000, 11) == b"\1" * 10 + b"\0"
        space.all_gather(session.encode().ljust(64))
    with pytest.raises(ValueError, match="length is 3, allowed are 0 to 2"):
        engine.write_bytes_to_buffer(memory, b"12", 3)
    with pytest.raises(ValueError, match="length is -1"):
        engine.read_bytes_from_buffer(memory, -1)
    assert engine.free_managed_buffer(memory, 1 << 16) == 0
    assert engine.free_managed_buffer(memory, 1 << 16) < 0


def test_mooncakes_transfers_in_the_background():
    jobs.run(in_background, 2, MEMSPAN_TRANS_WAIT="1")


def watch_a_death(rank, ranks):
    space = shared_space(rank, ranks)
    engine = mf_adapter.TransferEngine()
    session = f"127.0.0.1:{engine.get_rpc_port()}"
    assert engine.initialize(url(), session, "Both", 0) == 0
    memory = bytearray(4096)
    place = np.frombuffer(memory, np.uint8).ctypes.data
    assert engine.register_memory(place, 4096) == 0
    everybody = space.all_gather(f"{session} {place}".encode().ljust(64))
    peer, there = everybody[64 * (1 - rank) :].split()[:2]
    peer = peer.decode()
    gone = threading.Event()
    assert engine.set_peer_down_callback(lambda name: name == peer and gone.set()) == 0
    assert engine.transfer_sync_write(peer, place, int(there), 8) == 0
    assert space.barrier() == 0
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    assert gone.wait(30)
    assert engine.transfer_sync_write(peer, place, int(there), 8) < 0
    print("noticed", flush=True)
    os._exit(0)


def test_the_death_of_a_peer_is_told():
    ends = jobs.Job(watch_a_death, 2).ends()
    assert [code for code, _, _ in ends] == [0, -9]
    assert ends[0][1] == "noticed\n"


# ---- MEMSPAN_TRANSPORT


@pytest.mark.parametrize("function", [use_pool, streams_and_memory])
def test_over_links_on_one_host(function):
    jobs.run(function, 2, MEMSPAN_TRANSPORT="message")


def uses_links(rank, ranks):
    """Every way to the other process needs a carrier, and there is none of that name."""
    os.environ["MEMSPAN_CARRIER"] = "pigeon"
    bm = mf_smem.bm
    space = shared_space(rank, ranks)
    assert space.topology_can_reach(1 - rank) == mf_smem.shm.ShmDataOpType(0)
    assert bm.initialize(url(), ranks, 0, bm.BmConfig(auto_ranking=False, rank_id=rank)) == 0
    with bm.create(1, SLICE, 0) as pool:
        assert pool.join() == 0
        assert space.barrier() == 0
        there = pool.peer_rank_ptr(1 - rank, bm.BmMemType.HOST)
        assert pool.copy_data(b"12345678", there, 8, bm.BmCopyType.H2G) != 0
        assert 'MEMSPAN_CARRIER is "pigeon"' in mf_smem.get_last_err_msg()
        assert space.barrier() == 0
    engine = mf_adapter.TransferEngine()
    assert engine.initialize(url(), "127.0.0.1", "Both", 0) == 0
    session = space.all_gather(engine.session_id.encode().ljust(64))[64 * (1 - rank) :].split()[0]
    assert engine.probe(session.decode()) < 0
    assert 'MEMSPAN_CARRIER is "pigeon"' in mf_smem.get_last_err_msg()
    assert space.barrier() == 0


def test_only_links_are_used_where_they_alone_are_allowed():
    jobs.run(uses_links, 2, MEMSPAN_TRANSPORT="message")


def knows_no_pigeons(rank, ranks):
    config = mf_smem.bm.BmConfig()
    assert mf_smem.bm.initialize(url(), 1, 0, config) == -2000
    assert 'MEMSPAN_TRANSPORT names "pigeon"; allowed are mapped' in mf_smem.get_last_err_msg()


def test_an_unknown_transport_is_refused():
    jobs.run(knows_no_pigeons, 1, MEMSPAN_TRANSPORT="pigeon")


# ---- the store, the log, the settings


def test_the_command_hosts_a_store():
    address = f"tcp://127.0.0.1:{jobs.free_port()}"
    command = [sys.executable, "-m", "mf_adapter.launch_ascend_mf_store"]
    environment = {**os.environ, "ASCEND_MF_STORE_URL": address, "ASCEND_MF_LOG_LEVEL": "3"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as store:
        assert store.stdout.readline() == f"the store listens at {address}\n"
        engine = mf_adapter.TransferEngine()
        assert engine.initialize(address, "127.0.0.1:7", "Prefill", 0) == 0
        engine.destroy()
        store.send_signal(signal.SIGTERM)
        assert store.wait(jobs.LIMIT_S) == 0
    environment.pop("ASCEND_MF_STORE_URL")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "ASCEND_MF_STORE_URL is not set" in done.stderr


def sends_the_log_elsewhere(rank, ranks):
    """In a process of its own: who has logged much lately logs no more for some seconds."""
    lines = []
    assert mf_smem.set_extern_logger(lambda level, text: lines.append(text)) == 0
    assert mf_smem.bm.initialize("tcp://127.0.0.1:9", 0, 0, mf_smem.bm.BmConfig()) == -2000
    assert any("worldSize is 0" in line for line in lines)
    assert mf_smem.set_extern_logger(None) == -2000
    with pytest.raises(TypeError, match="cannot be called"):
        mf_smem.set_extern_logger(5)


def test_the_log_goes_where_it_is_sent():
    jobs.run(sends_the_log_elsewhere, 1)
    assert mf_smem.set_log_level(9) == -2000
    assert mf_smem.set_log_level(3) == 0


def test_codes_raise_when_asked_to():
    memfabric_hybrid.raise_on_error(True)
    try:
        with pytest.raises(ValueError, match="worldSize is 0"):
            mf_smem.bm.initialize("tcp://127.0.0.1:9", 0, 0, mf_smem.bm.BmConfig())
    finally:
        memfabric_hybrid.raise_on_error(False)


def test_where_headers_and_libraries_lie():
    assert memfabric_hybrid.get_include_path().endswith("/include")
    assert memfabric_hybrid.get_lib_path().endswith("/lib")


def test_config_stores():
    address = f"tcp://127.0.0.1:{jobs.free_port()}"
    assert memfabric_hybrid.create_config_store(address) == 0
    assert memfabric_hybrid.destroy_config_store(address) == 0
    assert memfabric_hybrid.destroy_config_store(address) == -2007
    assert memfabric_hybrid.set_conf_store_tls(True, "nonsense") == -2000


# ---- ports


def test_ports_of_engines_are_random_and_held():
    """Workers that set the same seed draw different ports, and nobody else can bind them."""
    code = (
        "import random, sys, memfabric_hybrid\n"
        "random.seed(7)\n"
        "engine = memfabric_hybrid.TransferEngine()\n"
        "print(engine.get_rpc_port(), flush=True)\n"
        "sys.stdin.read()\n"
    )
    workers = [
        subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    try:
        ports = {int(worker.stdout.readline()) for worker in workers}
        random.seed(7)
        assert len(ports) == 2 and ports != set(random.sample(range(15000, 25001), 1000)[:2])
        for port in ports:
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with pytest.raises(OSError, match="in use"):
                    other.bind(("0.0.0.0", port))
    finally:
        for worker in workers:
            worker.communicate()
