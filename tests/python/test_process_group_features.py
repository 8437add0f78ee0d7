# SPDX-License-Identifier: Apache-2.0
"""What torch.distributed's backend does beside plain collectives."""

import datetime
import os
import subprocess
import sys
import time

from jobs import hosts
import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native, process_group  # noqa: E402
from process_groups import run_in_turn  # noqa: E402
from torch.distributed._functional_collectives import (  # noqa: E402
    allow_inflight_collective_as_graph_input_ctx,
)

FLOAT8 = [torch.float8_e4m3fn, torch.float8_e5m2]


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def milliseconds(count):
    return datetime.timedelta(milliseconds=count)


def backend_of(group):
    return group._get_backend(torch.device("cpu"))


def values(rank, count, dtype=torch.float32):
    return torch.randn(count, generator=torch.Generator().manual_seed(rank)).to(dtype)


# ---- reductions


def premul_sums(rank, ranks):
    for factor in (0.25, torch.tensor([0.25])):
        half = dist._make_nccl_premul_sum(factor)
        expected = sum(values(r, 100) * 0.25 for r in range(ranks))
        mine = values(rank, 100)
        dist.all_reduce(mine, half)
        assert torch.equal(mine, expected)
        mine = values(rank, 100)
        dist.reduce(mine, ranks - 1, half)
        assert torch.equal(mine, expected if rank == ranks - 1 else values(rank, 100))
        mine = torch.empty(7)
        dist.reduce_scatter_single(mine, values(rank, 7 * ranks), half)
        expected = sum(values(r, 7 * ranks) * 0.25 for r in range(ranks))
        assert torch.equal(mine, expected[7 * rank : 7 * rank + 7])
    with pytest.raises(ValueError, match="PREMUL_SUM is of floating-point numbers"):
        dist.all_reduce(torch.ones(3, dtype=torch.int32), half)


def float8_sums(rank, ranks):
    for dtype in FLOAT8:
        expected = sum(values(r, 500, dtype).float() for r in range(ranks)).to(dtype).float()
        mine = values(rank, 500, dtype)
        dist.all_reduce(mine)
        assert torch.equal(mine.float(), expected), dtype
        mine = torch.empty(4, dtype=dtype)
        dist.reduce_scatter_single(mine, values(rank, 4 * ranks, dtype))
        expected = sum(values(r, 4 * ranks, dtype).float() for r in range(ranks)).to(dtype).float()
        assert torch.equal(mine.float(), expected[4 * rank : 4 * rank + 4]), dtype
        all_of = [torch.empty(6, dtype=dtype) for _ in range(ranks)]
        dist.all_gather(all_of, values(rank, 6, dtype))
        assert all(torch.equal(a.float(), values(r, 6, dtype).float()) for r, a in enumerate(all_of))


def uneven_sizes(rank, ranks):
    for sizes in ([3 * r for r in range(ranks)], [1000 * (ranks - r) + r for r in range(ranks)]):
        all_of = [torch.zeros(size) for size in sizes]
        dist.all_gather(all_of, values(rank, sizes[rank]))
        assert all(torch.equal(a, values(r, sizes[r])) for r, a in enumerate(all_of))
        parts = [values(100 * rank + r, size) for r, size in enumerate(sizes)]
        mine = torch.empty(sizes[rank])
        dist.reduce_scatter(mine, parts)
        assert torch.equal(mine, sum(values(100 * r + rank, sizes[rank]) for r in range(ranks)))
    with pytest.raises(ValueError, match="elements"):
        dist.all_gather([torch.zeros(rank + 2)] * ranks, torch.zeros(1))


def sparse(rank, shape, dense_dims, dtype=torch.float32):
    """Rank 0 has no elements; others have some twice."""
    generator = torch.Generator().manual_seed(rank)
    lead = len(shape) - dense_dims
    indices = torch.randint(0, min(shape), (lead, 4 * rank), generator=generator)
    elements = torch.randn(4 * rank, *shape[lead:], generator=generator).to(dtype)
    return torch.sparse_coo_tensor(indices, elements, shape, check_invariants=True)


def sparse_sums(rank, ranks):
    for shape, dense_dims in (((5, 6), 0), ((4, 3, 2), 1)):
        expected = sum(sparse(r, shape, dense_dims).coalesce().to_dense() for r in range(ranks))
        mine = sparse(rank, shape, dense_dims)
        dist.all_reduce(mine)
        assert mine.is_sparse and torch.equal(mine.to_dense(), expected)
        mine = sparse(rank, shape, dense_dims)
        dist.all_reduce(mine, async_op=True).wait()
        assert torch.equal(mine.to_dense(), expected)
    with pytest.raises(ValueError, match="SUM only"):
        dist.all_reduce(sparse(rank, (5, 6), 0), dist.ReduceOp.MAX)


def results_without_gradients(rank, ranks):
    """A thread of the group writes to a parameter with gaps."""
    store = dist.distributed_c10d._get_default_store()
    leaf = torch.nn.Parameter(torch.ones(4, 6).t())
    if rank != 0:
        store.wait(["queued"])
    work = dist.all_reduce(leaf, async_op=True)
    if rank == 0:
        store.set("queued", "")
    work.wait()
    assert leaf.requires_grad and leaf.is_leaf and (leaf == ranks).all()


def results_in_inference_mode(rank, ranks):
    """Rank 0 calls first, so a thread of the group writes its results, which have gaps, in the mode of the call."""
    store = dist.distributed_c10d._get_default_store()

    def gaps(value=-1.0):
        return torch.full((4, 6), float(value)).t()

    def lists(call, *arguments, **keywords):
        some = [gaps(10 * rank + peer) for peer in range(ranks)]
        return call(*arguments, some, **keywords)

    def from_last(call, *arguments):
        some = [gaps(10 * rank + peer) for peer in range(ranks)] if rank == ranks - 1 else None
        return call(*arguments, some, src=ranks - 1, async_op=True)

    def to_first(out, value):
        return dist.gather(value, out if rank == 0 else None, dst=0, async_op=True)

    def message(out):
        return dist.irecv(out, ranks - 1) if rank == 0 else dist.isend(gaps(rank), 0)

    every = list(range(ranks))
    asynchronous = {"async_op": True}
    first = [10 * peer for peer in every]
    # What rank 0 gets: a tensor for each value.
    calls = {
        "broadcast": (lambda out: dist.broadcast(out[0].fill_(rank), ranks - 1, **asynchronous), [ranks - 1]),
        "all_reduce": (lambda out: dist.all_reduce(out[0].fill_(rank), **asynchronous), [sum(every)]),
        "reduce": (lambda out: dist.reduce(out[0].fill_(rank), 0, **asynchronous), [sum(every)]),
        "all_gather": (lambda out: dist.all_gather(out, gaps(rank), **asynchronous), every),
        "gather": (lambda out: to_first(out, gaps(rank)), every),
        "scatter": (lambda out: from_last(dist.scatter, out[0]), [10 * (ranks - 1)]),
        "reduce_scatter": (lambda out: lists(dist.reduce_scatter, out[0], **asynchronous), [sum(first)]),
        "all_to_all": (lambda out: lists(dist.all_to_all, out, **asynchronous), first),
        "recv": (lambda out: message(out[0]), [ranks - 1]),
    }
    for name, (call, values) in calls.items():
        if name == "recv" and rank not in (0, ranks - 1):
            continue
        with torch.inference_mode():
            out = [gaps() for _ in values]
            if rank != 0:
                store.wait([f"inferred {name}"])
            work = call(out)
            if rank == 0:
                store.set(f"inferred {name}", "")
        work.wait()
        if rank == 0:
            assert [each.unique().tolist() for each in out] == [[value] for value in values], name


def asynchronous_mistakes(rank, ranks):
    """Who waits for a work that a thread of the group does gets its failure."""
    store = dist.distributed_c10d._get_default_store()
    if rank != 0:
        store.wait(["mistaken"])
    works = [dist.all_reduce(torch.ones(3 + rank), async_op=True) for _ in range(2)]
    different = f"the size in bytes is {12 + 4 * rank} here and .* on member "
    if rank == 0:
        store.set("mistaken", "")
    with pytest.raises(ValueError, match=different):
        works[0].wait()
    assert not works[0].is_success()
    with pytest.raises(Exception, match=different):
        works[1].get_future().wait()
    dist.all_reduce(torch.ones(3))


# ---- time-outs


def changed_timeouts(rank, ranks):
    # Of another host nothing is heard while somebody of the own one is missing.
    missing = ", ".join(str(r) for r in range(1, ranks) if hosts.are_near(0, r, ranks))
    for name in ("set_timeout", "_set_default_timeout"):
        group = dist.new_group()
        changed = group if name == "set_timeout" else backend_of(group)
        getattr(changed, name)(milliseconds(200))
        if rank == 0:
            begin = time.monotonic()
            with pytest.raises(RuntimeError, match=f" Timed out .*PE {missing} did not come"):
                dist.barrier(group)
            assert time.monotonic() - begin < 10
        dist.barrier()


def monitored_barriers(rank, ranks):
    group = dist.new_group()
    for waits_for_all in (False, True):
        group.monitored_barrier(milliseconds(20_000), wait_all_ranks=waits_for_all)
    group.monitored_barrier()
    # The others tell what happened when rank 0 does not answer.
    if rank == 0:
        with pytest.raises(RuntimeError, match="Rank 1 failed to pass monitoredBarrier in 100 ms"):
            group.monitored_barrier(milliseconds(100))
    elif rank == 2:
        said = "Rank 2 successfully reached monitoredBarrier, but received errors while waiting for "
        with pytest.raises(RuntimeError, match=said + "send/recv from rank 0"):
            group.monitored_barrier(milliseconds(100))
    dist.barrier()
    group = dist.new_group()
    if rank == 0:
        missing = ", ".join(map(str, range(1, ranks)))
        with pytest.raises(RuntimeError, match=f"Ranks {missing} failed to pass monitoredBarrier"):
            group.monitored_barrier(milliseconds(100), wait_all_ranks=True)
        with pytest.raises(RuntimeError, match="Rank 0 timed out in monitoredBarrier"):
            group.monitored_barrier(milliseconds(0))
    dist.barrier()


# ---- what others look at


def sequence_numbers(rank, ranks):
    group = dist.new_group()
    backend = backend_of(group)
    backend._set_sequence_number_for_group()
    first = backend._get_sequence_number_for_group()
    for _ in range(3):
        dist.all_reduce(torch.ones(1), group=group)
    assert backend._get_sequence_number_for_group() == first + 3


def works_of_synchronous_collectives(rank, ranks):
    """A collective done by the caller's thread returns no work; one behind a queued collective does."""
    store = dist.distributed_c10d._get_default_store()
    group, first, second = dist.new_group(), torch.ones(3), torch.ones(3)
    options = dist.AllreduceOptions()
    options.asyncOp = False
    assert group.allreduce([first], options) is None and first.tolist() == [ranks] * 3
    work = group.allreduce([first])
    work.wait()
    assert work.result()[0].data_ptr() == first.data_ptr() and first.tolist() == [ranks**2] * 3
    if rank != 0:
        store.wait(["queued a work"])
    work = dist.all_reduce(first, group=group, async_op=True)
    behind = group.allreduce([second], options)
    if rank == 0:
        assert behind is not None
        store.set("queued a work", "")
    if behind is not None:
        behind.wait()
    work.wait()
    assert second.tolist() == [ranks] * 3
    with allow_inflight_collective_as_graph_input_ctx():  # c10d keeps the work until wait_tensor()
        dist.all_reduce(second, group=group)
        torch.ops._c10d_functional.wait_tensor(second)
    assert second.tolist() == [ranks**2] * 3
    dist.destroy_process_group(group)


def profiler_titles(rank, ranks):
    one, all_of = torch.ones(2, 3), [torch.ones(2, 3) for _ in range(ranks)]
    flat = torch.ones(2 * ranks, 3)
    is_root = rank == 0
    calls = {
        "all_reduce": lambda: dist.all_reduce(one),
        "broadcast": lambda: dist.broadcast(one, 0),
        "reduce": lambda: dist.reduce(one, 0),
        "all_gather": lambda: dist.all_gather(all_of, one),
        "all_gather_into_tensor": lambda: dist.all_gather_single(flat, one),
        "gather": lambda: dist.gather(one, all_of if is_root else None),
        "scatter": lambda: dist.scatter(one, all_of if is_root else None),
        "reduce_scatter": lambda: dist.reduce_scatter(one, all_of),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_single(one, flat),
        "all_to_all": lambda: dist.all_to_all(all_of, [each.clone() for each in all_of]),
        "sparse_all_reduce": lambda: dist.all_reduce(sparse(rank, (5, 6), 0)),
        "barrier": dist.barrier,
    }
    for name, call in calls.items():
        with torch.autograd.profiler.profile(record_shapes=True) as profiler:
            call()
        events = [event for event in profiler.function_events if event.name == f"memspan:{name}"]
        assert len(events) == 1, (name, [event.name for event in profiler.function_events])
        assert events[0].is_async
        if name == "all_reduce":
            assert events[0].input_shapes == [[2, 3]]
    with torch.autograd.profiler.profile() as profiler:
        work = dist.all_reduce(one, async_op=True)
        work.wait()
    assert sum(event.name == "memspan:all_reduce" for event in profiler.function_events) == 1
    with torch.autograd.profiler.profile() as profiler:
        works = [dist.isend(one, (rank + 1) % ranks), dist.irecv(flat[:2], (rank - 1) % ranks)]
        for work in works:
            work.wait()
    names = [event.name for event in profiler.function_events]
    assert names.count("memspan:send") == names.count("memspan:recv") == 1


CHECKS = [
    premul_sums,
    float8_sums,
    uneven_sizes,
    sparse_sums,
    results_without_gradients,
    results_in_inference_mode,
    asynchronous_mistakes,
    changed_timeouts,
    monitored_barriers,
    sequence_numbers,
    works_of_synchronous_collectives,
    profiler_titles,
]


def all_checks(rank, ranks):
    run_in_turn(CHECKS, rank, ranks)


@pytest.mark.parametrize("ranks", hosts.ranks_or(3))
def test_features(ranks):
    for out in jobs.run(all_checks, ranks):
        assert out.split() == [check.__name__ for check in CHECKS]


# ---- groups that no registry knows


def groups_of_their_own(rank, ranks):
    import memspan.torch  # noqa: F401: makes the name known, as the installed package does
    from torch.distributed import _dist2

    with pytest.raises(ValueError, match="no options, and got colour"):
        process_group.create_alone(None, 0, 1, milliseconds(1), torch.device("cpu"), colour=3)
    group = _dist2.new_group("memspan", milliseconds(20_000), "cpu")
    assert not dist.is_initialized() and (group.rank(), group.size()) == (rank, ranks)
    total = torch.full((3,), float(rank))
    group.allreduce(total).wait()
    assert total.tolist() == [sum(range(ranks))] * 3
    group.barrier().wait()
    group.shutdown()


@pytest.mark.parametrize("ranks", hosts.ranks_or(2))
def test_groups_of_their_own(ranks):
    jobs.run(groups_of_their_own, ranks)


# ---- by our launcher


UNDER_OSHRUN = r"""
import os
import memspan.torch
import torch
import torch.distributed as dist
dist.init_process_group("memspan")
total = torch.ones(3)
dist.all_reduce(total)
os.write(1, f"{os.environ['MASTER_ADDR']} {dist.get_world_size()} {total.tolist()}\n".encode())
dist.destroy_process_group()
"""


def test_a_job_of_oshrun_meets_without_addresses():
    oshrun = os.environ.get("MEMSPAN_OSHRUN") or os.path.join(os.path.dirname(sys.executable), "oshrun")
    taken = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")
    environment = {name: value for name, value in os.environ.items() if name not in taken}
    done = subprocess.run(
        [oshrun, *hosts.launcher_options(2), "-n", "2", sys.executable, "-c", UNDER_OSHRUN],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{hosts.ADDRESS} 2 [2.0, 2.0, 2.0]"] * 2
