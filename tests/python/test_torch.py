# SPDX-License-Identifier: Apache-2.0
"""Symmetric tensors, and everything that the interface's first handler had wrong."""

import gc
import os
import time

import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

from memspan.torch import symmetric_memory as sm  # noqa: E402
from memspan.torch.heap import heap  # noqa: E402

HEAP = str(64 << 20)
TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]
TYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64]


def run(function, ranks, **environment):
    """As jobs.run; the ranks find each other at a port of their own."""
    port = str(jobs.free_port())
    return jobs.run(
        function,
        ranks,
        SHMEM_IP_PORT=f"tcp://127.0.0.1:{port}",
        SYMMETRIC_MEMORY_HEAP_SIZE=HEAP,
        **environment,
    )


def numbers(shape, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 50, shape, generator=generator).to(dtype)


# ---- on two hosts


def on_two_hosts(rank, ranks):
    mine, other = sm.empty((4,)).fill_(rank), 1 - rank
    handle = sm.rendezvous(mine)
    for refused in (
        lambda: heap().peer(mine, other),
        lambda: handle.get_buffer(other, (4,), torch.float32),
        lambda: handle.buffer_ptrs,
    ):
        with pytest.raises(ValueError, match=f"rank {other} is on another host than rank {rank}"):
            refused()
    handle.barrier()
    assert heap().read(mine, other).eq(other).all()
    handle.barrier()
    heap().write(mine, other, torch.full((4,), 5.0))
    handle.put_signal(other)
    handle.wait_signal(other)
    assert mine.eq(5).all()


def check_the_refusal():
    """Peers' tensors are refused there; put, get and signals are not."""
    run(on_two_hosts, 2)


one_host = pytest.mark.one_host(reason="peers' memory is a tensor", instead=check_the_refusal)


# ---- memory


def tensors(rank, ranks):
    assert sm.is_shmem_available()
    for dtype in TYPES:
        made = sm.empty((3, 5), dtype)
        assert (made.shape, made.dtype, made.is_contiguous()) == ((3, 5), dtype, True)
        assert heap().is_symmetric(made) and heap().is_symmetric(made[1])
        made.copy_(numbers((3, 5), dtype, rank))
        sm.barrier()
        peer = heap().peer(made, (rank + 1) % ranks)
        assert torch.equal(peer, numbers((3, 5), dtype, (rank + 1) % ranks))
        assert torch.equal(heap().peer(made.t(), (rank + 1) % ranks), peer.t())
        sm.barrier()
    assert sm.empty(7).shape == (7,) and sm.empty([2, 0]).numel() == 0
    with pytest.raises(ValueError, match="extents"):
        sm.empty((3, -1))
    with pytest.raises(ValueError, match="999999996 bytes does not fit"):
        sm.empty(249999999)
    assert not heap().is_symmetric(torch.zeros(3))


@one_host
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_tensors(ranks):
    run(tensors, ranks)


def garbage(rank, ranks):
    """More than the heap has, in all; every rank drops in another order."""
    kept = []
    for round in range(100):
        kept.append(sm.empty(1 << 20, torch.uint8))
        assert kept[-1].sum() == 0
        kept[-1].fill_(1)
        if len(kept) == 4 + rank:
            kept.pop(rank % len(kept))
        if rank == 0:
            gc.collect()
    view = kept[-1][5:]
    kept.clear()
    assert view[0] == 1


def test_dropped_tensors_are_given_back_once_all_have_dropped_them():
    run(garbage, 3)


def bad_heap(rank, ranks):
    assert not sm.is_shmem_available()
    with pytest.raises(ValueError, match='SYMMETRIC_MEMORY_HEAP_SIZE is "much"'):
        sm.empty(4)


def test_a_heap_of_no_size_is_refused():
    jobs.run(bad_heap, 1, SYMMETRIC_MEMORY_HEAP_SIZE="much")


# ---- one-sided


def one_sided(rank, ranks):
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for dtype in TYPES:
        box = sm.empty(10, dtype)
        mine = numbers((10,), dtype, rank)
        sm.barrier()
        # Offsets and sizes are ints or tensors, in elements.
        sm.shmem_put(box, 2, mine, torch.tensor([3]), torch.tensor(4), after)
        sm.barrier()
        assert torch.equal(box[2:6], numbers((10,), dtype, before)[3:7])
        got = torch.zeros(10, dtype=dtype)
        sm.shmem_get(got, 1, box, 2, 4, after)
        assert torch.equal(got[1:5], mine[3:7])
        sm.shmem_put(box, 10, mine, 0, 0, after)
    box = sm.empty(4)
    guard = sm.empty(4)
    signal = sm.empty(8, torch.int32)
    mine = torch.full((4,), float(rank))
    sm.shmem_put_with_signal(box, 0, mine, 0, 4, signal, 3, 7, 0, after)
    sm.shmem_wait_for_signal(box, signal, 3, torch.tensor([7]), 0)
    assert (box == before).all()
    sm.barrier()
    sm.shmem_signal_op(signal, 3, -2, 1, after)
    sm.shmem_wait_for_signal(None, signal, 3, 6, 2)
    assert signal[3] == 5
    sm.shmem_wait_for_signal(None, signal, 3, 4, 1)
    for wrong, what in [
        (lambda: sm.shmem_put(box, 0, mine, 0, 4, ranks), "target_rank is"),
        (lambda: sm.shmem_put(box, 0, mine, 0, 4, -1), "target_rank is -1"),
        (lambda: sm.shmem_put(box, 1, mine, 0, 4, 0), r"target has 4 elements, and \[1, 5\)"),
        (lambda: sm.shmem_put(box, 0, mine, 2, 4, 0), "src has 4"),
        (lambda: sm.shmem_put(box, 0, mine, 0, -1, 0), "target has 4"),
        (lambda: sm.shmem_put(box, 0, mine.double(), 0, 4, 0), "float64"),
        (lambda: sm.shmem_put(mine, 0, mine, 0, 4, 0), "target is not a symmetric"),
        (lambda: sm.shmem_put(box, 0, torch.zeros(4, 2)[:, 0], 0, 4, 0), "not contiguous"),
        (lambda: sm.shmem_get(mine, 0, mine, 0, 4, 0), "src is not a symmetric"),
        (lambda: sm.shmem_signal_op(signal, 8, 1, 0, 0), "signal has 8"),
        (lambda: sm.shmem_signal_op(signal, 0, 1, 5, 0), "signal_op is 5"),
        (lambda: sm.shmem_signal_op(box, 0, 1, 0, 0), "signal is of torch.float32"),
        (lambda: sm.shmem_wait_for_signal(None, signal, 0, 1, 3), "compare_op is 3"),
    ]:
        with pytest.raises(ValueError, match=what):
            wrong()
    sm.barrier()
    assert (guard == 0).all() and (box == before).all()


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_one_sided(ranks):
    run(one_sided, ranks)


# ---- collectives


def late(rank, ranks, round):
    """One rank is late, another one each time."""
    if round % ranks == rank:
        time.sleep(0.02)


def gather(rank, ranks):
    for round, (dtype, size) in enumerate([(d, 5) for d in TYPES] + [(torch.float32, 700_001)] * 3):
        late(rank, ranks, round)
        output = torch.full((ranks * size,), 1).to(dtype)
        source = numbers((size,), dtype, rank * 100 + round)
        assert sm.shmem_allgather(output, source) is output
        for other in range(ranks):
            expected = numbers((size,), dtype, other * 100 + round)
            assert torch.equal(output[other * size : (other + 1) * size], expected)
    # In place, in symmetric memory, of a shape, not contiguous, of nothing.
    output = sm.empty((ranks, 3))
    output[rank] = rank + 1.0
    sm.shmem_allgather(output, output[rank])
    assert output.tolist() == [[r + 1.0] * 3 for r in range(ranks)]
    columns = torch.zeros(3, ranks).t()
    sm.shmem_allgather(columns, torch.full((6,), float(rank))[::2])
    assert columns.tolist() == [[float(r)] * 3 for r in range(ranks)]
    sm.shmem_allgather(torch.empty(0), torch.empty(0))
    # One rank's mistake is everybody's exception, and the job goes on.
    with pytest.raises(ValueError):
        sm.shmem_allgather(torch.empty(ranks * 2 + (rank == 0)), torch.empty(2))
    with pytest.raises(ValueError, match="different numbers|do not fit") if ranks > 1 else pytest.raises(ValueError):
        size = 2 if rank or ranks == 1 else 3
        sm.shmem_allgather(torch.empty(ranks * size + (ranks == 1)), torch.empty(size))
    sm.shmem_allgather(torch.empty(ranks), torch.empty(1))


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_allgather(ranks):
    run(gather, ranks)


def exchange(rank, ranks):
    sizes = [[(3 * a + 5 * b) % 4 for b in range(ranks)] for a in range(ranks)]
    sizes[0][ranks - 1] = 1_000_003
    for round in range(3):
        late(rank, ranks, round)
        send = [numbers((n,), torch.float32, rank * 10 + to) for to, n in enumerate(sizes[rank])]
        expected = [sizes[of][rank] for of in range(ranks)]
        receive = torch.full((sum(expected) + 2,), -1.0)
        counts = torch.tensor(expected) if round else expected
        sm.shmem_alltoall(send, receive, counts)
        place = 0
        for of, count in enumerate(expected):
            wanted = numbers((count,), torch.float32, of * 10 + rank)
            assert torch.equal(receive[place : place + count], wanted)
            place += count
        assert (receive[place:] == -1).all()
    with pytest.raises(ValueError, match="do not fit"):
        sm.shmem_alltoall([torch.ones(2)] * ranks, torch.zeros(1), [2] * ranks)
    with pytest.raises(ValueError):
        wrong = 3 if rank == 0 else 2
        sm.shmem_alltoall([torch.ones(2)] * ranks, torch.zeros(3 * ranks), [wrong] * ranks)
    with pytest.raises(ValueError):
        sm.shmem_alltoall([torch.ones(2)], torch.zeros(9 * ranks), [2] * (ranks + 1))


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_alltoall(ranks):
    run(exchange, ranks)


# ---- fused


def fused(rank, ranks):
    torch.set_num_threads(1)
    for round, dtype in enumerate([torch.float32, torch.bfloat16, torch.float32, torch.float16] * 2):
        late(rank, ranks, round)
        m, k, n = 6 + round, 17, 9
        parts = [numbers((m, k), dtype, 7 * round + r) for r in range(ranks)]
        b = numbers((k, n), dtype, 1000 + round)
        gathered = torch.empty(m * ranks, k, dtype=dtype)
        c = torch.empty(m * ranks, n, dtype=dtype)
        result = sm.fused_all_gather_matmul(parts[rank].t().contiguous().t(), b, c, gathered, None)
        assert result[0] is gathered and result[1] is c
        assert torch.equal(gathered, torch.cat(parts))
        close = 1e-4 if dtype == torch.float32 else 3e-2
        torch.testing.assert_close(c, torch.cat([p @ b for p in parts]), rtol=close, atol=close)
        # The products of all, added in float32 and rounded once.
        x1 = [numbers((4 * ranks, k), dtype, 50 * round + r) for r in range(ranks)]
        wide = torch.float32
        total = sum(x.to(wide) @ b.to(wide) for x in x1)[rank * 4 : (rank + 1) * 4]
        for operation in ("sum", "avg"):
            mine = sm.fused_matmul_reduce_scatter(x1[rank], b, None, None, operation)
            expected = total / ranks if operation == "avg" else total
            assert mine.shape == (4, n) and mine.dtype == dtype
            torch.testing.assert_close(mine, expected.to(dtype), rtol=close, atol=close)
    b = torch.ones(3, 2)
    a, c, out = torch.ones(2, 3), torch.ones(2 * ranks, 2), torch.ones(2 * ranks, 3)
    for wrong, what in [
        (lambda: sm.fused_all_gather_matmul(a, b.t(), c, out, None), "columns"),
        (lambda: sm.fused_all_gather_matmul(a, b, c[1:], out, None), "c is"),
        (lambda: sm.fused_all_gather_matmul(a, b, c, out.double(), None), "gather_out is"),
        (lambda: sm.fused_all_gather_matmul(a, b.double(), c, out, None), "float64"),
        (lambda: sm.fused_matmul_reduce_scatter(a, b, None, None, "max"), "reduce_op|rows"),
        (lambda: sm.fused_matmul_reduce_scatter(torch.ones(ranks + 1, 3), b), "rows")
        if ranks > 1
        else (lambda: sm.fused_matmul_reduce_scatter(a[0], b), "dimensions"),
    ]:
        with pytest.raises(ValueError, match=what):
            wrong()
    if ranks > 1:
        with pytest.raises(ValueError, match="differ"):
            sm.fused_matmul_reduce_scatter(torch.ones(ranks * (1 + rank), 3), b)
    assert torch.equal(sm.fused_matmul_reduce_scatter(torch.ones(ranks, 3), b), torch.full((1, 2), 3.0 * ranks))


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_fused_products(ranks):
    run(fused, ranks)


def same_bits(rank, ranks):
    """Whoever owns a row, its bits are the same: the ranks give their inputs in other places."""
    x1 = numbers((ranks * 2, 64), torch.bfloat16, 1 + rank)
    rolled = torch.cat([x1[2:], x1[:2]])
    x2 = numbers((64, 32), torch.bfloat16, 99)
    whole = torch.empty(ranks * 2, 32, dtype=torch.bfloat16)
    other = torch.empty(ranks * 2, 32, dtype=torch.bfloat16)
    sm.shmem_allgather(whole, sm.fused_matmul_reduce_scatter(x1, x2))
    sm.shmem_allgather(other, sm.fused_matmul_reduce_scatter(rolled, x2))
    assert torch.equal(torch.cat([whole[2:], whole[:2]]), other)


def test_rows_have_the_same_bits_whoever_owns_them():
    run(same_bits, 4)


# ---- rendezvous


def handles(rank, ranks):
    assert sm.get_signal_pad_size() == 2048
    sm.set_signal_pad_size(4 * ranks * 3)
    with pytest.raises(ValueError, match="multiples of 4"):
        sm.set_signal_pad_size(6)
    tensor = sm.empty((2, 8))
    tensor.fill_(rank)
    with pytest.raises(ValueError, match="not a symmetric"):
        sm.rendezvous(torch.zeros(2))
    handle = sm.rendezvous(tensor)
    with pytest.raises(ValueError, match="in use"):
        sm.set_signal_pad_size(64)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, ranks, 64)
    assert handle.offset == 0 and handle.buffer_ptrs[rank] == tensor.data_ptr()
    assert len(handle.signal_pad_ptrs) == ranks
    handle.barrier()
    for peer in range(ranks):
        assert (handle.get_buffer(peer, (4, 2), torch.float32, 8) == peer).all()
        assert handle.get_remote_tensor(peer, (16,), torch.float32)[15] == peer
        assert handle.get_signal_pad(peer).numel() == 3 * ranks
    with pytest.raises(ValueError, match="end at byte 68"):
        handle.get_buffer(0, (16,), torch.float32, 1)
    with pytest.raises(ValueError, match="channel is 3"):
        handle.put_signal(0, channel=3)
    if ranks > 1:
        after, before = (rank + 1) % ranks, (rank - 1) % ranks
        for round in range(100):
            handle.get_buffer(after, (1,), torch.float32)[0] = float(round)
            handle.put_signal(after, channel=1)
            handle.wait_signal(before, channel=1)
            assert tensor[0, 0] == round
            handle.barrier(channel=2)
        with pytest.raises(TimeoutError, match="within 50 ms"):
            handle.wait_signal(before, 0, timeout_ms=50)
    handle.barrier(channel=2)
    assert (handle.get_signal_pad(rank, dtype=torch.int32) == 0).all()


@one_host
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rendezvous(ranks):
    run(handles, ranks)


def dies(rank, ranks):
    handle = sm.rendezvous(sm.empty(4))
    handle.barrier()
    if rank == 1:
        os.kill(os.getpid(), 9)
    with pytest.raises(RuntimeError, match="PE 1"):
        handle.wait_signal(1)
    with pytest.raises(RuntimeError, match="PE 1"):
        sm.shmem_allgather(torch.empty(2 * ranks), torch.empty(2))
    print("noticed", flush=True)
    os._exit(0)


def test_the_death_of_a_rank_is_an_exception():
    port = jobs.free_port()
    ends = jobs.Job(
        dies, 2, SHMEM_IP_PORT=f"tcp://127.0.0.1:{port}", SYMMETRIC_MEMORY_HEAP_SIZE=HEAP
    ).ends()
    assert [code for code, _, _ in ends] == [0, -9], ends
    assert ends[0][1] == "noticed\n"
