# SPDX-License-Identifier: Apache-2.0
"""Pools of KV blocks among processes."""

import os
import random
import signal
import subprocess
import sys

import jobs
import mf_smem
import numpy as np
import pytest
from memspan import Error, InvalidArgument
from memspan.kv_pool import KvPool, bytes_of

SHARE, BLOCK = 8 << 20, 60_000


def key(number):
    return number.to_bytes(32, "little")


def block(number):
    return np.random.default_rng(number).integers(0, 256, BLOCK, np.uint8)


def url():
    return os.environ["MEMSPAN_TEST_URL"]


def meeting(rank, ranks):
    """For barriers; its store is the pool's as well."""
    assert mf_smem.shm.initialize(url(), ranks, rank, 0, mf_smem.shm.ShmConfig()) == 0
    return mf_smem.shm.create(63, ranks, rank, 0)


def share_blocks(rank, ranks):
    """Each puts some, all find all."""
    space = meeting(rank, ranks)
    with KvPool(url(), SHARE if rank < 2 else 0, largest_share=f"{SHARE >> 20}M", members=8, host_store=False) as pool:
        assert space.barrier() == 0  # all shares are there
        mine = [rank * 10 + i for i in range(10)]
        assert pool.put([key(i) for i in mine], [block(i) for i in mine]) == [True] * 10
        assert space.barrier() == 0
        for i in range(10 * ranks):
            target = np.zeros(BLOCK, np.uint8)
            assert pool.get([key(i)], [target]) == [True]
            assert np.array_equal(target, block(i))
        assert pool.lookup([key(i) for i in (0, 11, 20, 99, 1)]) == 3
        assert pool.sizes([key(i) for i in (0, 99, 1)]) == [BLOCK, 0, BLOCK]
        assert pool.contains(key(5)) and not pool.contains(b"of any length")
        stats = pool.stats()
        assert stats["got"] == 10 * ranks and stats["put"] == 10 and stats["entries"] >= 10 * ranks
        # In pieces: two halves that lie apart.
        halves = np.zeros((2, BLOCK), np.uint8)
        half = BLOCK // 2
        addresses = [halves.ctypes.data, halves.ctypes.data + BLOCK]
        assert pool.get_pieces([key(7)], addresses, [half, half]) == [True]
        assert np.array_equal(halves[:, :half].reshape(-1), block(7))
        assert pool.put_pieces([b"x%d" % rank], addresses, np.full(2, half, np.uint64)) == [True]
        with pytest.raises(ValueError, match="3 addresses for 1 keys of 2 pieces"):
            pool.get_pieces([key(7)], [*addresses, 5], [half, half])
        with pytest.raises(ValueError, match="there are 1 keys and 0 buffers"):
            pool.put([key(1)], [])
        with pytest.raises(ValueError, match="read-only"):
            pool.get([key(7)], [bytes(BLOCK)])
        with pytest.raises(InvalidArgument, match="the entry has 60000 bytes, and the pieces 5"):
            pool.get([key(7)], [bytearray(5)])
        assert pool.put([b"small%d" % rank], [bytes(5)]) == [True]
        wrong = [key(7), b"small%d" % rank, key(5)]
        for raises in (False, True):
            mf_smem.raise_on_error(raises)
            failed = pytest.raises(InvalidArgument, match="has 5 bytes, and the pieces 60000")
            with failed as raised:
                pool.get(wrong, [np.zeros(BLOCK, np.uint8) for _ in wrong])
            assert raised.value.results == [1, 0, 0]
            with failed as raised:
                pool.get_pieces(wrong, addresses * 3, [half, half])
            assert raised.value.results == [1, 0, 0]
            new = [b"%d new %d %d" % (i, rank, raises) for i in range(3)]
            with pytest.raises(InvalidArgument) as raised:
                pool.put_pieces(new, [*addresses, 16, 16, *addresses], [half, half])
            assert raised.value.results == [1, -1, -1] and pool.lookup(new) == 1
        mf_smem.raise_on_error(False)
        with pytest.raises(InvalidArgument, match="one store for all pools"):
            KvPool("tcp://127.0.0.1:9")
        assert space.barrier() == 0


@pytest.mark.one_host("puts into the shares of others", instead=lambda: None)
def test_what_one_puts_all_find():
    jobs.run(share_blocks, 3)


def ends_its_membership(rank, ranks):
    bm = mf_smem.bm
    settings = {"largest_share": SHARE, "members": 8}
    with pytest.raises(InvalidArgument, match="sections"):
        KvPool(url(), SHARE, sections=1000, **settings)
    assert bm.store_url() == "", "a pool that cannot be made leaves no membership"
    for sections in (0, 1000):
        # The program's own membership, which pools use and leave as it is.
        assert bm.initialize(url(), 8, 0, bm.BmConfig()) == 0
        if sections:
            with pytest.raises(InvalidArgument, match="sections"):
                KvPool(url(), SHARE, sections=sections, **settings)
        else:
            KvPool(url(), SHARE, **settings).destroy()
        assert bm.store_url() == url()
        bm.uninitialize()
        # That of the pools, until the last of them ends.
        first = KvPool(url(), SHARE, **settings)
        with pytest.raises(Error, match="has a pool of that id"):
            KvPool(url(), SHARE, **settings)
        assert bm.store_url() == url() and first.put([key(1)], [block(1)]) == [True]
        first.destroy()
        assert bm.store_url() == ""


def test_the_last_pool_of_a_process_ends_its_membership():
    jobs.run(ends_its_membership, 1)


def press(rank, ranks):
    """Much more than there is room for: what is found is right."""
    space = meeting(rank, ranks)
    with KvPool(url(), SHARE if rank == 0 else 0, largest_share=SHARE, members=8, host_store=False) as pool:
        assert space.barrier() == 0
        numbers, found, target = random.Random(rank), 0, np.zeros(BLOCK, np.uint8)
        for _ in range(600):
            number = numbers.randrange(200)
            if pool.get([key(number)], [target])[0]:
                assert np.array_equal(target, block(number))
                found += 1
            else:
                assert pool.put([key(number)], [block(number)]) == [True]
        assert found > 100
        assert pool.stats()["evicted"] > 0
        assert space.barrier() == 0


@pytest.mark.one_host("puts into the shares of others", instead=lambda: None)
def test_under_pressure_what_is_found_is_right():
    jobs.run(press, 3)


PUTTER = """
import sys, numpy as np
from memspan.kv_pool import KvPool
pool = KvPool(sys.argv[1], largest_share=%d, host_store=False)
blocks = [np.full(%d, i %% 251, np.uint8) for i in range(400)]
while True:  # until it is killed
    for i in range(400):
        assert pool.put([i.to_bytes(32, "little")], [blocks[i]]) == [True]
    print("put", flush=True)
""" % (SHARE, BLOCK)


def test_what_was_put_survives_who_put_it():
    """With a process that only gives memory: members are killed in the middle of a put, and come again."""
    store = f"tcp://127.0.0.1:{jobs.free_port()}"
    before = set(os.listdir("/dev/shm"))
    command = [sys.executable, "-m", "memspan.kv_pool", "--store", store, "--share", "8M"]
    keeper = subprocess.Popen([*command, "--largest-share", "8M"], stdout=subprocess.PIPE, text=True)
    try:
        assert "gives 8388608 bytes" in keeper.stdout.readline()
        for _ in range(3):
            putter = subprocess.Popen([sys.executable, "-c", PUTTER, store], stdout=subprocess.PIPE, text=True)
            assert putter.stdout.readline() == "put\n"
            putter.send_signal(signal.SIGKILL)
            putter.wait()
            putter.stdout.close()
        code = (
            "import sys, numpy as np\n"
            "from memspan.kv_pool import KvPool\n"
            f"pool = KvPool(sys.argv[1], largest_share={SHARE}, host_store=False)\n"
            f"target, found = np.zeros({BLOCK}, np.uint8), 0\n"
            "for i in range(400):\n"
            "    if pool.get([i.to_bytes(32, 'little')], [target])[0]:\n"
            "        assert (target == i % 251).all(), i\n"
            "        found += 1\n"
            "slots = pool.stats()['slots']\n"
            "assert found > slots * 0.9, (found, slots)\n"
            "for i in range(2 * slots):\n"
            "    assert pool.put([b'new %d' % i], [target]) == [True]\n"
            "assert pool.stats()['entries'] == slots\n"
        )
        subprocess.run([sys.executable, "-c", code, store], check=True, timeout=60)
    finally:
        keeper.terminate()
        assert keeper.wait(20) == 0
        keeper.stdout.close()
    assert set(os.listdir("/dev/shm")) <= before


def test_sizes_as_texts():
    assert (bytes_of("3"), bytes_of("2K"), bytes_of("8G")) == (3, 2048, 8 << 30)
    with pytest.raises(ValueError, match='"8X" is not a size'):
        bytes_of("8X")
    with pytest.raises(InvalidArgument, match="share is 5 bytes, allowed are up to largest_share, 4"):
        KvPool(share=5, largest_share=4)
    with pytest.raises(InvalidArgument, match="share is 4294967296 bytes, allowed are up to largest_share, 1048576"):
        KvPool(share="4G", largest_share="1M")
    with pytest.raises(InvalidArgument, match='share: "4X" is not a size'):
        KvPool(share="4X")
