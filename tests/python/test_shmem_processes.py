# SPDX-License-Identifier: Apache-2.0
"""shmem among processes: exchange, collectives, teams, starts and ends, streams."""

import os
import subprocess
import sys
import threading

from jobs import hosts
import jobs
import numpy as np
import pytest
import shmem

HEAP = 1 << 24


def exchange(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    assert (shmem.get_my_pe(), shmem.get_pe_count()) == (rank, ranks)
    following = (rank + 1) % ranks
    before = (rank - 1) % ranks
    inbox = shmem.tensor(1000, "int32")
    word = shmem.shmem_calloc(1, 4)
    mine = np.arange(1000, dtype=np.int32) + rank
    shmem.shmem_putmem_signal(
        inbox, mine, mine.nbytes, word, 1, shmem.SignalOp.SIGNAL_SET, following
    )
    assert shmem.shmem_signal_wait_until(word, shmem.CmpOp.CMP_EQ, 1) == 1
    assert np.array_equal(inbox, np.arange(1000) + before)
    shmem.shmem_barrier_all()
    got = bytearray(4000)
    shmem.shmem_getmem(got, inbox, 4000, following)
    assert np.frombuffer(got, np.int32)[0] == rank
    if hosts.ARE_MANY and shmem.shmem_ptr(inbox.ctypes.data, following) is None:
        with pytest.raises(ValueError, match=f"process {following} is on another host"):
            shmem.peer_array(inbox, following)
        shmem.shmem_int32_p(inbox, 100 + rank, following)
    else:
        direct = shmem.peer_array(inbox, following)
        assert direct[0] == rank
        direct[0] = 100 + rank
        del direct
    shmem.shmem_barrier_all()
    assert inbox[0] == 100 + before
    of = rank if hosts.ARE_MANY else following
    assert shmem.tensor(4, "uint8", pe=of).shape == (4,)
    # Elements, words, atomics.
    counter = shmem.shmem_calloc(1, 8)
    shmem.shmem_int64_atomic_add(counter, rank + 1, 0)
    shmem.shmem_barrier_all()
    assert shmem.shmem_int64_g(counter, 0) == ranks * (ranks + 1) // 2
    shmem.shmem_barrier_all()
    if rank == 0:
        shmem.shmem_int64_atomic_set(counter, 0, 0)
        shmem.shmem_uint64_p(counter, 3, ranks - 1)
    shmem.shmem_quiet()
    if rank == ranks - 1:
        shmem.shmem_uint64_wait_until(counter, shmem.CmpOp.CMP_EQ, 3)
    shmem.shmem_sync()
    del inbox
    shmem.shmem_finalize()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_processes_exchange(ranks):
    jobs.run(exchange, ranks)


def collect(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    source = shmem.tensor(8, "float64")
    target = shmem.tensor((ranks, 8), "float64")
    source[:] = rank + np.arange(8)
    expected = [[r + i for i in range(8)] for r in range(ranks)]
    assert shmem.shmem_double_sum_reduce(target, source, 8) == 0
    assert target[0].tolist() == np.sum(expected, axis=0).tolist()
    assert shmem.shmem_double_max_reduce(target, source, 8, team=0) == 0
    assert target[0].tolist() == expected[-1]
    assert shmem.shmem_fcollect(target, source, 64) == 0
    assert target.tolist() == expected
    assert shmem.shmem_collect(target, source, 64) == 0
    assert shmem.shmem_broadcast(target, source, 64, ranks - 1) == 0
    blocks = shmem.tensor((ranks, 2), "float64")
    blocks[:] = [[rank * 10 + to] * 2 for to in range(ranks)]
    assert shmem.shmem_alltoall(target, blocks, 16) == 0
    assert target.flatten()[: 2 * ranks : 2].tolist() == [r * 10 + rank for r in range(ranks)]
    with pytest.raises(ValueError, match="dest has"):
        shmem.shmem_fcollect(target, source, 64 * 100)
    del source, target, blocks
    shmem.shmem_finalize()


@pytest.mark.parametrize("ranks", [2, 4])
def test_collectives(ranks):
    jobs.run(collect, ranks)


def split(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    even = shmem.team_split_strided(shmem.TEAM_WORLD, 0, 2, (ranks + 1) // 2)
    assert (even == shmem.TEAM_INVALID) == (rank % 2 == 1)
    if rank % 2 == 0:
        assert shmem.team_my_pe(even) == rank // 2
        assert shmem.get_team_pe_count(even) == shmem.pe_count(even) == (ranks + 1) // 2
        assert shmem.team_translate_pe(even, 1, shmem.TEAM_WORLD) == 2
        assert shmem.shmem_team_get_config(even) == shmem.TeamConfig(0)
        shmem.shmem_barrier(even)
        shmem.team_destroy(even)
    x_team, y_team = shmem.team_split_2d(shmem.TEAM_WORLD, 2)
    assert shmem.get_team_my_pe(x_team) == rank % 2
    assert shmem.get_team_my_pe(y_team) == rank // 2
    value = shmem.tensor(1, "int32")
    value[0] = rank
    assert shmem.shmem_int32_sum_reduce(value, value, 1, team=x_team) == 0
    assert value[0] == 2 * (rank - rank % 2) + 1
    del value
    shmem.shmem_finalize()


def test_teams():
    jobs.run(split, 4)


def by_unique_id(rank, ranks):
    uid = jobs.from_first(rank, shmem.shmem_get_unique_id)
    assert shmem.shmem_init_using_unique_id(rank, ranks, HEAP, uid) == 0
    shmem.shmem_barrier_all()
    shmem.shmem_finalize()


def test_unique_id(tmp_path):
    jobs.run(by_unique_id, 2, MEMSPAN_TEST_FILE=str(tmp_path / "uid"))


def test_a_unique_id_of_the_wrong_size_is_refused():
    with pytest.raises(ValueError, match="unique id has 64 bytes, not 3"):
        shmem.shmem_init_using_unique_id(0, 1, HEAP, b"abc")


def twice(rank, ranks):
    for _ in range(2):
        assert shmem.shmem_init(rank, ranks, HEAP) == 0
        place = shmem.shmem_malloc(8)
        assert place is not None
        shmem.register_decrypt_handler(lambda text: text)
        shmem.shmem_free(place)
        shmem.shmem_finalize()


def test_start_and_end_twice():
    jobs.run(twice, 2)


def no_end(rank, ranks):
    with shmem.job(rank, ranks, HEAP):
        shmem.shmem_barrier_all()
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    print("ends without finalize")


def test_a_program_may_leave_out_the_end():
    assert jobs.run(no_end, 2) == ["ends without finalize\n"] * 2


def wait_for_the_dead(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    word = shmem.shmem_calloc(1, 4)
    shmem.shmem_barrier_all()
    if rank == 1:
        os.kill(os.getpid(), 9)
    with pytest.raises(shmem.errors.PeerFailed, match="PE 1"):
        shmem.shmem_barrier_all()
    with pytest.raises(shmem.errors.PeerFailed):
        shmem.shmem_signal_wait_until(word, shmem.CmpOp.CMP_NE, 0)
    print("noticed", flush=True)
    os._exit(0)


def test_the_death_of_a_process_is_an_exception():
    ends = jobs.Job(wait_for_the_dead, 3).ends()
    assert [code for code, _, _ in ends] == [0, -9, 0]
    assert ends[0][1] == ends[2][1] == "noticed\n"


def on_threads(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    word = shmem.shmem_calloc(1, 4)
    seen = []
    waiter = threading.Thread(
        target=lambda: seen.append(shmem.shmem_signal_wait_until(word, shmem.CmpOp.CMP_GE, 5))
    )
    waiter.start()
    shmem.shmem_barrier_all()  # needs the GIL, which the waiter has given up
    shmem.shmem_signal_op(word, 5, shmem.SignalOp.SIGNAL_ADD, (rank + 1) % ranks)
    waiter.join()
    assert seen == [5]
    shmem.shmem_barrier_all()
    shmem.shmem_finalize()


def test_waits_let_other_threads_run():
    jobs.run(on_threads, 2)


def in_streams(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    other = (rank + 1) % ranks
    inbox = shmem.tensor(4, "int32")
    word = shmem.shmem_calloc(1, 4)
    mine = np.full(4, rank, np.int32)
    with shmem.Stream() as stream:
        shmem.shmem_signal_wait_until_on_stream(word, shmem.CmpOp.CMP_EQ, 9, stream)
        assert not stream.is_idle()
        shmem.shmem_barrier_all()  # only now may the other one signal
        shmem.aclshmemx_putmem_on_stream(inbox, mine, mine.nbytes, other, 0)
        shmem.shmem_signal_op_on_stream(word, 9, shmem.SignalOp.SIGNAL_SET, other)
        shmem.shmem_quiet_on_stream()
        assert stream.synchronize() == 0
        assert inbox.tolist() == [other] * 4
        with pytest.raises(ValueError, match="needed is an address"):
            shmem.shmem_putmem_on_stream(inbox, mine, 8, other, stream)
        assert shmem.shmem_putmem_on_stream(12345, mine.ctypes.data, 8, other, stream) == 0
        assert stream.synchronize(10000) != 0
    del inbox
    shmem.shmem_finalize()


def test_streams():
    jobs.run(in_streams, 2)


def exits(rank, ranks):
    assert shmem.shmem_init(rank, ranks, HEAP) == 0
    shmem.shmem_barrier_all()
    if rank == 1:
        shmem.shmem_global_exit(7)
    shmem.shmem_barrier_all()


def test_global_exit_ends_all():
    assert [code for code, _, _ in jobs.Job(exits, 3).ends()] == [7, 7, 7]


def test_under_oshrun():
    program = (
        "import shmem\n"
        "assert shmem.shmem_init(mem_size=1 << 20) == 0\n"
        "shmem.shmem_barrier_all()\n"
        "import sys; sys.stdout.write(f'PE {shmem.get_my_pe()}\\n')\n"
    )
    done = subprocess.run(
        [os.environ["MEMSPAN_OSHRUN"], *hosts.launcher_options(3), "-n", "3", sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split("\n")[:-1]) == ["PE 0", "PE 1", "PE 2"]


def wait_for_shorts(rank, ranks):
    assert shmem.shmem_init(mem_size=HEAP) == 0
    words = shmem.tensor(3, "int16")
    if rank == 0:
        assert shmem.aclshmem_int16_wait_until_any(words, 3, None, shmem.CmpOp.CMP_EQ, -2) == 1
        shmem.aclshmem_int16_wait(words[2:], 0)
        assert words[2] == 5
    else:
        shmem.shmem_int16_p(words[1:], -2, 0)
        shmem.shmem_quiet()
        shmem.shmem_int16_p(words[2:], 5, 0)
    del words
    shmem.shmem_finalize()


def test_short_words_are_waited_for_among_processes():
    jobs.run(wait_for_shorts, 2)
