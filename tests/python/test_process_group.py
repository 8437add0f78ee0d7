# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "memspan", with gloo as the oracle."""

import datetime
import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import entry_points

import jobs
import pytest
from jobs import hosts

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native, process_group  # noqa: E402
from process_groups import losses, transformer  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64]
OPERATIONS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]
COUNTS = [0, 1, 5, 1000, 33_333, 300_001]


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def numbers(count, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(count, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype == torch.bool else 7, (count,), generator=generator).to(dtype)


def combined(tensors, operation):
    """In the order of the ranks; half types as float32, rounded once."""
    dtype = tensors[0].dtype
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    result = tensors[0].to(wide)
    for tensor in tensors[1:]:
        other = tensor.to(wide)
        if operation == dist.ReduceOp.SUM:
            result = result + other
        elif operation == dist.ReduceOp.PRODUCT:
            result = result * other
        elif operation == dist.ReduceOp.MIN:
            result = torch.minimum(result, other)
        elif operation == dist.ReduceOp.MAX:
            result = torch.maximum(result, other)
        elif operation == dist.ReduceOp.BAND:
            result = result & other
        elif operation == dist.ReduceOp.BOR:
            result = result | other
        elif operation == dist.ReduceOp.BXOR:
            result = result ^ other
    return result.to(dtype)


# ---- what the ranks do; each is a function of (rank, ranks)


def reductions(rank, ranks):
    for dtype in FLOATS + INTEGERS:
        for operation in OPERATIONS:
            for count in COUNTS if operation == dist.ReduceOp.SUM else [1000]:
                all_of = [numbers(count, dtype, r) for r in range(ranks)]
                expected = combined(all_of, operation)
                mine = all_of[rank].clone()
                dist.all_reduce(mine, operation)
                assert torch.equal(mine, expected), (dtype, operation, count)
                mine = all_of[rank].clone()
                dist.reduce(mine, ranks - 1, operation)
                assert torch.equal(mine, expected if rank == ranks - 1 else all_of[rank])
    for operation in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        all_of = [numbers(100, torch.int32, r) for r in range(ranks)]
        mine = all_of[rank].clone()
        dist.all_reduce(mine, operation)
        assert torch.equal(mine, combined(all_of, operation))
    flags = torch.tensor([rank == 0, True, False])
    dist.all_reduce(flags, dist.ReduceOp.MIN)
    assert flags.tolist() == [ranks == 1, True, False]
    turns = torch.full((5,), complex(rank, 1), dtype=torch.complex64)
    dist.all_reduce(turns)
    assert turns[0] == complex(sum(range(ranks)), ranks)
    mean = torch.full((5,), float(rank))
    dist.all_reduce(mean, dist.ReduceOp.AVG)
    assert mean.tolist() == [sum(range(ranks)) / ranks] * 5


def scattered_reductions(rank, ranks):
    for dtype in (torch.float32, torch.bfloat16, torch.int32):
        for count in COUNTS:
            all_of = [numbers(count * ranks, dtype, r) for r in range(ranks)]
            expected = combined(all_of, dist.ReduceOp.SUM)[rank * count : (rank + 1) * count]
            result = torch.empty(count, dtype=dtype)
            dist.reduce_scatter_single(result, all_of[rank])
            assert torch.equal(result, expected), (dtype, count)
            result = torch.empty(count, dtype=dtype)
            dist.reduce_scatter(result, list(all_of[rank].chunk(ranks)) if count else [result] * ranks)
            assert torch.equal(result, expected)


def gathers(rank, ranks):
    for dtype in (torch.float32, torch.uint8, torch.complex64, torch.bool):
        for count in COUNTS:
            all_of = [numbers(count, dtype, r) for r in range(ranks)]
            flat = torch.empty(ranks * count, dtype=dtype)
            dist.all_gather_single(flat, all_of[rank])
            assert torch.equal(flat, torch.cat(all_of))
            # Results that are not contiguous, and shapes with more axes.
            strided = [torch.empty(2, count, dtype=dtype)[0:1].t()[:, 0] for _ in range(ranks)]
            dist.all_gather(strided, all_of[rank])
            assert all(torch.equal(a, b) for a, b in zip(strided, all_of))
            results = [torch.empty_like(all_of[0]) for _ in range(ranks)] if rank == 0 else None
            dist.gather(all_of[rank], results)
            assert rank != 0 or all(torch.equal(a, b) for a, b in zip(results, all_of))
            got = torch.empty(count, dtype=dtype)
            dist.scatter(got, all_of if rank == ranks - 1 else None, src=ranks - 1)
            assert torch.equal(got, all_of[rank])
            got = all_of[rank].clone()
            dist.broadcast(got, ranks - 1)
            assert torch.equal(got, all_of[ranks - 1])
    grid = torch.arange(12.0).view(3, 4) + rank
    gathered = torch.empty(3 * ranks, 4)
    dist.all_gather_single(gathered, grid.t().contiguous().t())  # not contiguous
    assert torch.equal(gathered, torch.cat([torch.arange(12.0).view(3, 4) + r for r in range(ranks)]))
    names = [None] * ranks
    dist.all_gather_object(names, {"rank": rank, "text": "x" * rank * 1000})
    assert [name["rank"] for name in names] == list(range(ranks))


def exchanges(rank, ranks):
    for count in COUNTS:
        all_of = [numbers(count * ranks, torch.float32, r) for r in range(ranks)]
        result = torch.empty(count * ranks)
        dist.all_to_all_single(result, all_of[rank])
        assert torch.equal(result, torch.cat([a[rank * count : (rank + 1) * count] for a in all_of]))
    # Rank a has a + 2 b rows for rank b.
    splits = [rank + 2 * other for other in range(ranks)]
    wanted = [other + 2 * rank for other in range(ranks)]
    mine = numbers(sum(splits) * 3, torch.float32, rank).view(-1, 3)
    result = torch.empty(sum(wanted), 3)
    dist.all_to_all_single(result, mine, wanted, splits)
    expected = []
    for other in range(ranks):
        theirs = [other + 2 * r for r in range(ranks)]
        rows = numbers(sum(theirs) * 3, torch.float32, other).view(-1, 3)
        expected.append(rows.split(theirs)[rank])
    assert torch.equal(result, torch.cat(expected))
    outputs = [torch.empty(w, 3) for w in wanted]
    dist.all_to_all(outputs, list(mine.split(splits)))
    assert torch.equal(torch.cat(outputs), torch.cat(expected))


def messages(rank, ranks):
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    # All send first, more than any buffer holds, then receive.
    big = numbers(500_000, torch.float32, rank)
    got = torch.empty(500_000)
    works = [dist.isend(big, after), dist.irecv(got, before)]
    for work in works:
        work.wait()
    assert torch.equal(got, numbers(500_000, torch.float32, before))
    # By tags, the other way round, and from whoever comes.
    works = [dist.isend(torch.full((3,), float(tag)), after, tag=tag) for tag in range(4)]
    for tag in (3, 1, 2, 0):
        small = torch.empty(3)
        sender = dist.recv(small, None if tag == 2 else before, tag=tag)
        assert sender == before and small.tolist() == [tag] * 3
    for work in works:
        work.wait()
    # While nobody waits at the sender.
    if rank == 0:
        work = dist.isend(big, ranks - 1, tag=9)
        dist.barrier()
        assert work.is_completed()
    elif rank == ranks - 1:
        dist.recv(got, 0, tag=9)
        assert torch.equal(got, numbers(500_000, torch.float32, 0))
        dist.barrier()
    else:
        dist.barrier()
    into = torch.empty(2, 500_000)
    requests = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, big, after), dist.P2POp(dist.irecv, into[1], before)]
    )
    for request in requests:
        request.wait()
    assert torch.equal(into[1], numbers(500_000, torch.float32, before))
    with pytest.raises(ValueError, match="were asked for"):
        other = dist.isend(torch.zeros(4), after, tag=5)
        try:
            dist.recv(torch.empty(3), before, tag=5)
        finally:
            other.wait()


def works_in_order(rank, ranks):
    tensors = [torch.full((1000 * k + 1,), float(rank + k)) for k in range(20)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    last = torch.ones(1)
    dist.all_reduce(last)  # behind them all
    assert last.item() == ranks
    assert all(work.is_completed() for work in works)
    for k, (work, tensor) in enumerate(zip(works, tensors)):
        assert work.get_future().wait()[0].data_ptr() == tensor.data_ptr()
        assert tensor[0].item() == sum(range(ranks)) + ranks * k
    seen = []
    work = dist.all_reduce(torch.ones(3), async_op=True)
    work.get_future().then(lambda future: seen.append(future.value()[0].tolist())).wait()
    assert seen == [[ranks] * 3]


def groups(rank, ranks):
    evens = dist.new_group(list(range(0, ranks, 2)))
    pairs = [dist.new_group([a, b]) for a in range(ranks) for b in range(a + 1, ranks)]
    if rank % 2 == 0:
        total = torch.tensor([float(rank)])
        dist.all_reduce(total, group=evens)
        assert total.item() == sum(range(0, ranks, 2))
    which = 0
    for a in range(ranks):
        for b in range(a + 1, ranks):
            if rank in (a, b):
                got = torch.tensor([rank])
                dist.broadcast(got, b, group=pairs[which])
                assert got.item() == b
            which += 1
    # Two groups in another order on each rank: neither waits for the other.
    first, second = dist.new_group(), dist.new_group()
    if rank % 2:
        first, second = second, first
    one, two = torch.ones(100_000), torch.ones(100_000)
    works = [dist.all_reduce(one, group=first, async_op=True)]
    works.append(dist.all_reduce(two, group=second, async_op=True))
    for work in works:
        work.wait()
    assert one[0].item() == two[-1].item() == ranks
    for group in (evens, *pairs):
        if group is not dist.GroupMember.NON_GROUP_MEMBER:
            dist.destroy_process_group(group)
    for _ in range(5):
        group = dist.new_group()
        dist.barrier(group)
        dist.destroy_process_group(group)


def check_subgroup(group, members, rank):
    """Every kind of collective among these ranks of the job, and messages around them."""
    size, place = len(members), members.index(rank)
    after, before = members[(place + 1) % size], members[place - 1]
    for count in (7, 50_001):
        all_of = [numbers(count, torch.float32, r) for r in members]
        total = combined(all_of, dist.ReduceOp.SUM)
        mine = all_of[place].clone()
        dist.all_reduce(mine, group=group)
        assert torch.equal(mine, total)
        mine = all_of[place].clone()
        dist.reduce(mine, members[-1], group=group)
        assert torch.equal(mine, total if rank == members[-1] else all_of[place])
        mine = all_of[place].clone()
        dist.broadcast(mine, members[-1], group=group)
        assert torch.equal(mine, all_of[-1])
        gathered = torch.empty(size * count)
        dist.all_gather_single(gathered, all_of[place], group=group)
        assert torch.equal(gathered, torch.cat(all_of))
        results = [torch.empty(count) for _ in members] if rank == members[-1] else None
        dist.gather(all_of[place], results, members[-1], group)
        assert results is None or all(torch.equal(a, b) for a, b in zip(results, all_of))
        dist.scatter(mine, all_of if rank == members[0] else None, members[0], group)
        assert torch.equal(mine, all_of[place])
        all_of = [numbers(size * count, torch.float32, r) for r in members]
        part = slice(place * count, (place + 1) * count)
        dist.reduce_scatter_single(mine, all_of[place], group=group)
        assert torch.equal(mine, combined(all_of, dist.ReduceOp.SUM)[part])
        dist.all_to_all_single(gathered, all_of[place], group=group)
        assert torch.equal(gathered, torch.cat([a[part] for a in all_of]))
        work = dist.isend(all_of[place], after, group)
        dist.recv(gathered, before, group)
        work.wait()
        assert torch.equal(gathered, all_of[place - 1])


def subgroups(rank, ranks):
    """Of each two or more: within a host, across hosts, and with several of one host."""
    sizes = range(2, ranks + 1)
    of_members = {
        members: dist.new_group(list(members))
        for members in itertools.chain.from_iterable(itertools.combinations(range(ranks), n) for n in sizes)
    }
    of_members = {members: group for members, group in of_members.items() if rank in members}
    for members, group in of_members.items():
        check_subgroup(group, members, rank)
    for group in of_members.values():
        dist.destroy_process_group(group)


def mistakes(rank, ranks):
    with pytest.raises(ValueError, match="no average of int32"):
        dist.all_reduce(torch.ones(3, dtype=torch.int32), dist.ReduceOp.AVG)
    with pytest.raises((ValueError, TypeError)):
        dist.all_gather_single(torch.empty(3 * ranks + 1), torch.ones(3))
    mine = torch.full((3 + rank,), 5.0)
    with pytest.raises(ValueError, match=f"the size in bytes is {12 + 4 * rank} here and .* on member .*"):
        dist.all_reduce(mine)
    assert mine.eq(5).all()
    dist.barrier()


def strided_values(rank, ranks):
    """What is not contiguous is right, not refused."""
    plane = torch.arange(24.0).view(4, 6) * (rank + 1)
    total = sum(r + 1 for r in range(ranks))
    turned = plane.t()
    dist.all_reduce(turned)
    assert torch.equal(plane, torch.arange(24.0).view(4, 6) * total)
    column = plane[:, 2]
    dist.broadcast(column, 0)
    work = dist.isend(plane[:, 1], (rank + 1) % ranks)
    landed = torch.zeros(4, 2)
    dist.recv(landed[:, 1], (rank - 1) % ranks)
    work.wait()
    assert torch.equal(landed[:, 1], plane[:, 1]) and landed[:, 0].eq(0).all()


CHECKS = [
    reductions,
    scattered_reductions,
    gathers,
    exchanges,
    messages,
    works_in_order,
    groups,
    subgroups,
    mistakes,
    strided_values,
]


def all_checks(rank, ranks):
    torch.set_num_threads(1)
    assert process_group.is_compiled()
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    assert dist.get_backend() == "memspan"
    if hosts.ARE_REAL:
        names = [None] * ranks
        dist.all_gather_object(names, socket.gethostname())
        assert names == [f"host-{hosts.host_of(r, ranks)}" for r in range(ranks)]
    for check in CHECKS:
        begin = time.monotonic()
        check(rank, ranks)
        print(f"{check.__name__}: {time.monotonic() - begin:.2f} s", flush=True)
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", hosts.ranks_or(2, 3))
def test_everything(ranks):
    for out in jobs.run(all_checks, ranks):
        assert [line.split(":")[0] for line in out.splitlines()] == [c.__name__ for c in CHECKS]


ALONE = """
import torch.distributed as dist
dist.init_process_group("memspan", rank=0, world_size=1, store=dist.HashStore())
dist.barrier()
print(dist.get_backend())
"""


@pytest.mark.skipif(
    not entry_points(group="torch.backends", name="memspan"),
    reason="does not apply: memspan is imported from a build",
)
def test_pytorch_knows_the_name_without_another_import():
    done = subprocess.run(
        [sys.executable, "-c", ALONE],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip()) == (0, "memspan"), done.stderr


def test_without_a_compiler_the_way_out_is_told(tmp_path):
    """Nothing compiled and nothing to compile with."""
    done = subprocess.run(
        [sys.executable, "-c", "import memspan.torch\n" + ALONE],
        env={**os.environ, "PATH": str(tmp_path), "CXX": "", "MEMSPAN_TORCH_BUILD_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == (
        "memspan.errors.Error: the backend memspan of torch.distributed: no C++ compiler: PATH has no "
        "c++, g++ or clang++, and CXX is not set [memspan-explain no-compiler]"
    )


# ---- deaths


def waits_for_the_dead(rank, ranks):
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    dist.barrier()
    if rank == 1:
        os._exit(3)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="PE 1 .*died"):
        for _ in range(2):
            dist.all_reduce(torch.ones(10))
    with pytest.raises(RuntimeError, match="died"):
        dist.recv(torch.ones(10), 1)
    assert time.monotonic() - begin < 5
    # The end of the process is not held up by what nobody will do.
    os._exit(0)


@pytest.mark.parametrize("ranks", hosts.ranks_or(3))
def test_the_death_of_a_rank_is_an_error(ranks):
    ends = jobs.Job(waits_for_the_dead, ranks).ends()
    assert [code for code, _, _ in ends] == [3 if rank == 1 else 0 for rank in range(ranks)], ends


def waits_are_interrupted(rank, ranks):
    from test_interpreter import check_interrupts

    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    mine = torch.ones(1000)
    if rank == 0:
        check_interrupts(dist.new_group)
        backend = dist.group.WORLD._get_backend(mine.device)
        check_interrupts(backend.monitored_barrier)
        check_interrupts(lambda: dist.recv(mine, 1))
        check_interrupts(dist.all_reduce(mine, async_op=True).wait)
        dist.send(mine, 1)
    else:
        dist.recv(mine, 0)
    os._exit(0)  # they are out of step


def test_ctrl_c_ends_waits():
    jobs.run(waits_are_interrupted, 2)


def destroys_a_group_with_work_under_way(rank, ranks):
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    group = dist.new_group()
    mine = torch.ones(1000)
    begin = time.monotonic()
    if rank == 0:
        works = [dist.all_reduce(mine, group=group, async_op=True) for _ in range(3)]
        dist.destroy_process_group(group)
        for work in works:
            with pytest.raises(RuntimeError, match="left"):
                work.wait()
    dist.barrier()
    assert time.monotonic() - begin < 8
    if rank == 1:
        with pytest.raises(RuntimeError, match="PE 0 .*left"):
            for _ in range(2):  # rank 0 had put its part of the first one
                dist.all_reduce(mine, group=group)
    dist.destroy_process_group()


def test_a_group_is_destroyed_although_its_work_never_ends():
    jobs.run(destroys_a_group_with_work_under_way, 2)


def destroys_groups_while_far_ranks_are_stopped(rank, ranks):
    from test_interpreter import end_of_stop

    os.environ["MEMSPAN_HOST_ID"] = f"host-of-{rank}"
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    group = dist.new_group()
    pids = torch.zeros(ranks, dtype=torch.int64)
    dist.all_gather_single(pids, torch.tensor([os.getpid()]))
    for other in range(1, ranks):  # a group that is left waits for its messages
        if rank == 0:
            dist.send(pids, other, group=group)
        elif rank == other:
            dist.recv(pids, 0, group=group)
    dist.barrier()
    if rank > 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    for pid in pids.tolist()[1:]:
        end_of_stop(pid)
    for each in (group, None):
        begin = time.monotonic()
        dist.destroy_process_group(each)
        assert time.monotonic() - begin < 3
    for pid in pids.tolist()[1:]:
        os.kill(pid, signal.SIGCONT)
    os._exit(0)


def test_stopped_ranks_of_other_hosts_hold_up_an_end_for_two_seconds():
    jobs.run(destroys_groups_while_far_ranks_are_stopped, 3)


def waits_for_the_late(rank, ranks):
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=2))
    group = dist.new_group(timeout=datetime.timedelta(milliseconds=300))
    dist.barrier()
    if rank == 0:
        with pytest.raises(RuntimeError, match="PE 1 did not come"):
            dist.all_reduce(torch.ones(10), group=group)
    dist.barrier()


def test_a_rank_that_does_not_come_is_named():
    jobs.run(waits_for_the_late, 2)


# ---- training


def sharded_over(mesh):
    from torch.distributed.fsdp import fully_shard

    model = transformer()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def trains_alike(rank, ranks):
    from torch.distributed.device_mesh import DeviceMesh

    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    backends = {name: dist.new_group(backend=name) for name in ("gloo", "memspan")}
    replicated, sharded = {}, {}
    for name, group in backends.items():
        replicated[name] = losses(
            DistributedDataParallel(transformer(), process_group=group), rank, 12
        )
        sharded[name] = losses(sharded_over(DeviceMesh.from_group(group, "cpu")), rank, 12)
    for curves in (replicated, sharded):
        assert curves["memspan"][-1] < curves["memspan"][0]
        assert curves["memspan"] == pytest.approx(curves["gloo"], rel=1e-5)
    assert sharded["memspan"] == pytest.approx(replicated["memspan"], rel=1e-4)
    dist.barrier()
    for group in backends.values():
        dist.destroy_process_group(group)


@pytest.mark.parametrize("ranks", hosts.ranks_or(2))
def test_ddp_and_fsdp2_learn_as_with_gloo(ranks):
    jobs.run(trains_alike, ranks)


def trains_in_two_replicas(rank, ranks):
    """Sharded over half of the ranks, and replicated in the other half."""
    from torch.distributed.device_mesh import init_device_mesh

    torch.set_num_threads(1)
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    replicated = losses(DistributedDataParallel(transformer()), rank, 4)
    mesh = init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicas", "shards"))
    assert losses(sharded_over(mesh), rank, 4) == pytest.approx(replicated, rel=1e-4)
    dist.destroy_process_group()


def test_fsdp2_learns_as_ddp_when_it_shards_in_half_of_the_ranks():
    jobs.run(trains_in_two_replicas, 4)
