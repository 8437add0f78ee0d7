# SPDX-License-Identifier: Apache-2.0
"""PyTorch's layers above process groups, over the backend "memspan". Its synchronous collectives return no work, which
each layer must accept."""

import datetime
import faulthandler
import os

import jobs
import pytest
from jobs import hosts

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
import torch.distributed._functional_collectives as functional  # noqa: E402
from memspan.torch import native  # noqa: E402
from process_groups import run_in_turn  # noqa: E402
from torch._C import _distributed_c10d as c10d  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def tens(rank, count=4):
    """10 * rank, 10 * rank + 1, ..."""
    return torch.arange(count, dtype=torch.float32) + 10 * rank


def all_tens(ranks, count=4):
    return torch.cat([tens(rank, count) for rank in range(ranks)])


def sum_of_tens(ranks, count=4):
    return sum(tens(rank, count) for rank in range(ranks))


def my_part(whole, rank, ranks):
    return whole.chunk(ranks)[rank]


# ---- PyTorch's calls


def every_synchronous_call(rank, ranks):
    """Each returns None, and its result is complete."""
    mine, whole, total = tens(rank), all_tens(ranks), sum_of_tens(ranks)
    flat, part = torch.empty_like(whole), torch.empty(4)
    parts = [torch.empty(4) for _ in range(ranks)]
    is_root = rank == 0

    def same(*pairs):
        assert all(torch.equal(one, other) for one, other in pairs)

    assert dist.all_reduce(mine) is None
    same((mine, total))
    mine = tens(rank)
    assert dist.reduce(mine, 0) is None
    assert not is_root or torch.equal(mine, total)
    mine = tens(rank)
    assert dist.broadcast(mine, 0) is None
    same((mine, tens(0)))
    mine = tens(rank)
    assert dist.all_gather(parts, mine) is None
    same((torch.cat(parts), whole))
    assert dist.all_gather_single(flat, mine) is None
    same((flat, whole))
    assert dist.gather(mine, parts if is_root else None) is None
    assert dist.scatter(part, list(tens(0, 4 * ranks).chunk(ranks)) if is_root else None) is None
    same((part, my_part(tens(0, 4 * ranks), rank, ranks)))
    sums = my_part(sum_of_tens(ranks, 4 * ranks), rank, ranks)
    assert dist.reduce_scatter(part, list(tens(rank, 4 * ranks).chunk(ranks))) is None
    same((part, sums))
    assert dist.reduce_scatter_single(part, tens(rank, 4 * ranks)) is None
    same((part, sums))
    exchanged = torch.cat([my_part(tens(peer, 4 * ranks), rank, ranks) for peer in range(ranks)])
    assert dist.all_to_all_single(flat, tens(rank, 4 * ranks)) is None
    same((flat, exchanged))
    assert dist.all_to_all(parts, list(tens(rank, 4 * ranks).chunk(ranks))) is None
    same((torch.cat(parts), exchanged))
    assert dist.barrier() is None


def calls_of_c_plus_plus(rank, ranks):
    """The options' default is asyncOp = True, so each call returns a work."""
    group = dist.group.WORLD
    for work in (
        group.allreduce(tens(rank)),
        group.broadcast(tens(rank), 0),
        group.allgather([torch.empty(4) for _ in range(ranks)], tens(rank)),
        group.barrier(),
    ):
        assert work.wait() and work.is_completed()
    work = dist.all_reduce(tens(rank), async_op=True)
    assert torch.equal(work.get_future().wait()[0], sum_of_tens(ranks))


def coalesced(rank, ranks):
    for is_async in (False, True):
        sums, flats = [tens(rank), tens(rank)], [torch.empty(4 * ranks) for _ in range(2)]
        parts = [torch.empty(4) for _ in range(2)]
        with dist._coalescing_manager(async_ops=is_async) as reduced:
            for each in sums:
                dist.all_reduce(each)
        with dist._coalescing_manager(async_ops=is_async) as gathered:
            for each in flats:
                dist.all_gather_single(each, tens(rank))
        with dist._coalescing_manager(async_ops=is_async) as scattered:
            for each in parts:
                dist.reduce_scatter_single(each, tens(rank, 4 * ranks))
        if is_async:
            for manager in (reduced, gathered, scattered):
                manager.wait()
        assert all(torch.equal(each, sum_of_tens(ranks)) for each in sums)
        assert all(torch.equal(each, all_tens(ranks)) for each in flats)
        expected = my_part(sum_of_tens(ranks, 4 * ranks), rank, ranks)
        assert all(torch.equal(each, expected) for each in parts)


def messages(rank, ranks):
    got = torch.empty(4)
    requests = dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, tens(rank), (rank + 1) % ranks),
            dist.P2POp(dist.irecv, got, (rank - 1) % ranks),
        ]
    )
    assert len(requests) == 2
    for request in requests:
        request.wait()
    assert torch.equal(got, tens((rank - 1) % ranks))


def objects(rank, ranks):
    own = {"rank": rank, "text": "x" * (1 + 1000 * rank)}
    every = [{"rank": peer, "text": "x" * (1 + 1000 * peer)} for peer in range(ranks)]
    got = [None] * ranks
    dist.all_gather_object(got, own)
    assert got == every
    got = [None] * ranks if rank == 0 else None
    dist.gather_object(own, got)
    assert got == (every if rank == 0 else None)
    got = [own, rank]
    dist.broadcast_object_list(got, src=ranks - 1)
    assert got == [every[-1], ranks - 1]
    got = [None]
    dist.scatter_object_list(got, every if rank == 0 else None)
    assert got == [own]
    if rank == 0:
        dist.send_object_list([own], dst=1)
    elif rank == 1:
        got = [None]
        dist.recv_object_list(got, src=0)
        assert got == [every[0]]


def monitored(rank, ranks):
    dist.group.WORLD.monitored_barrier(datetime.timedelta(seconds=20), wait_all_ranks=True)


# ---- functional collectives and what stands on them


def functional_collectives(rank, ranks):
    name = dist.group.WORLD.group_name
    wait, ops = torch.ops._c10d_functional.wait_tensor, torch.ops._c10d_functional
    assert torch.equal(wait(ops.all_reduce(tens(rank), "sum", name)), sum_of_tens(ranks))
    assert torch.equal(wait(ops.broadcast(tens(rank), 1, name)), tens(1))
    assert torch.equal(wait(ops.all_gather_into_tensor(tens(rank), ranks, name)), all_tens(ranks))
    got = wait(ops.reduce_scatter_tensor(tens(rank, 4 * ranks), "sum", ranks, name))
    assert torch.equal(got, my_part(sum_of_tens(ranks, 4 * ranks), rank, ranks))
    even = [4] * ranks
    got = wait(ops.all_to_all_single(tens(rank, 4 * ranks), even, even, name))
    expected = [my_part(tens(peer, 4 * ranks), rank, ranks) for peer in range(ranks)]
    assert torch.equal(got, torch.cat(expected))
    got = [wait(each) for each in ops.all_reduce_coalesced([tens(rank), tens(rank, 2)], "sum", name)]
    assert torch.equal(got[0], sum_of_tens(ranks)) and torch.equal(got[1], sum_of_tens(ranks, 2))


def functional_gradients(rank, ranks):
    name = dist.group.WORLD.group_name
    wait, ops = torch.ops._c10d_functional.wait_tensor, torch.ops._c10d_functional_autograd
    leaf = tens(rank, 4 * ranks).requires_grad_()
    wait(ops.reduce_scatter_tensor(leaf, "sum", ranks, name)).sum().backward()
    assert torch.equal(leaf.grad, torch.ones(4 * ranks))
    leaf = tens(rank).requires_grad_()
    wait(ops.all_gather_into_tensor(leaf, ranks, name)).sum().backward()
    assert torch.equal(leaf.grad, torch.full((4,), float(ranks)))
    leaf, even = tens(rank, 4 * ranks).requires_grad_(), [4] * ranks
    (wait(ops.all_to_all_single(leaf, even, even, name)) * (rank + 1)).sum().backward()
    assert torch.equal(leaf.grad, torch.arange(1.0, ranks + 1).repeat_interleave(4))


def differentiable_calls(rank, ranks):
    from torch.distributed.nn import functional as nn

    leaf = tens(rank).requires_grad_()
    (nn.all_reduce(leaf) * (rank + 1)).sum().backward()
    every = float(sum(range(1, ranks + 1)))
    assert torch.equal(leaf.grad, torch.full((4,), every))
    leaf = tens(rank).requires_grad_()
    (torch.cat(nn.all_gather(leaf)) * (rank + 1)).sum().backward()
    assert torch.equal(leaf.grad, torch.full((4,), every))
    leaf = tens(rank).requires_grad_()
    nn.broadcast(leaf, 0).sum().backward()
    assert torch.equal(leaf.grad, torch.full((4,), float(ranks) if rank == 0 else 0.0))
    leaf, out = tens(rank, 4 * ranks).requires_grad_(), torch.empty(4 * ranks)
    nn.all_to_all_single(out, leaf).sum().backward()
    assert torch.equal(leaf.grad, torch.ones(4 * ranks))
    leaf, out = tens(rank, 4 * ranks).requires_grad_(), torch.empty(4)
    nn.reduce_scatter(out, list(leaf.chunk(ranks))).sum().backward()
    assert torch.equal(leaf.grad, torch.ones(4 * ranks))


def distributed_tensors(rank, ranks):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Partial, Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (ranks,))
    whole = torch.randn(4 * ranks, 2 * ranks, generator=torch.Generator().manual_seed(1))
    rows = distribute_tensor(whole, mesh, [Shard(0)])
    assert torch.equal(rows.full_tensor(), whole)
    columns = rows.redistribute(mesh, [Shard(1)])
    assert torch.equal(columns.to_local(), whole.chunk(ranks, 1)[rank])
    product = columns.t() @ rows  # of sharded sums
    assert torch.allclose(product.full_tensor(), whole.t() @ whole, atol=1e-4)
    once = dist.tensor.DTensor.from_local(tens(rank), mesh, [Partial()])
    assert torch.equal(once.redistribute(mesh, [Replicate()]).to_local(), sum_of_tens(ranks))


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    """Passes each operator and its work through Python."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operator, types, arguments=(), keywords=None):
        self.names.append(str(operator))
        return operator(*arguments, **(keywords or {}))


def dispatch_modes(rank, ranks):
    mine, flat = tens(rank), torch.empty(4 * ranks)
    with Counting() as counting:
        dist.all_reduce(mine)
        dist.all_gather_single(flat, tens(rank))
        dist.all_to_all_single(torch.empty(4 * ranks), tens(rank, 4 * ranks))
        dist.barrier()
    assert "c10d.allreduce_.default" in counting.names, counting.names
    assert torch.equal(mine, sum_of_tens(ranks)) and torch.equal(flat, all_tens(ranks))
    from torch.distributed.tensor.debug import CommDebugMode

    with CommDebugMode() as mode:
        dist.all_reduce(mine)
    assert mode.get_total_counts() == 1


def compiled_alike(rank, ranks):
    """torch.compile traces the collectives; the backend "eager" needs no C++ compiler."""

    @torch.compile(backend="eager", fullgraph=True)
    def step(value):
        value = value * 2
        dist.all_reduce(value)
        return functional.all_reduce(value, "sum", dist.group.WORLD) + 1

    assert torch.equal(step(tens(rank)), sum_of_tens(ranks) * 2 * ranks + 1)


# ---- training


def replicas(rank, ranks):
    """A step leaves parameters out, so DDP also reduces a map of the used ones."""

    class Half(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.left_out = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.norm = torch.nn.BatchNorm1d(4)  # its buffers are broadcast

        def forward(self, x):
            return self.norm(self.used(x))

    torch.manual_seed(rank)
    model = DistributedDataParallel(Half(), find_unused_parameters=True)
    for _ in range(3):
        model(torch.randn(5, 4)).square().sum().backward()
    mine = model.module.used.weight.grad
    theirs = torch.empty(4 * ranks, 4)
    dist.all_gather_single(theirs, mine)
    assert all(torch.equal(part, mine) for part in theirs.chunk(ranks))
    with model.join():  # uneven inputs
        for _ in range(1 + rank):
            model(torch.randn(5, 4)).square().sum().backward()


def optimizer_states_in_shards(rank, ranks):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 4))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
    got = [None] * ranks
    dist.all_gather_object(got, [each.tolist() for each in model.parameters()])
    assert all(each == got[0] for each in got)


# ---- groups that are classes of Python


class Forwarding(dist.ProcessGroup):
    """Forwards calls to another group, with the old names, as some frameworks do."""

    def __init__(self, group):
        super().__init__(group.rank(), group.size())
        self.group = group

    def allreduce(self, *arguments, **keywords):
        return self.group.allreduce(*arguments, **keywords)

    def allreduce_coalesced(self, *arguments, **keywords):
        return self.group.allreduce_coalesced(*arguments, **keywords)

    def allgather(self, *arguments, **keywords):
        return self.group.allgather(*arguments, **keywords)

    def broadcast(self, *arguments, **keywords):
        return self.group.broadcast(*arguments, **keywords)

    def barrier(self, *arguments, **keywords):
        return self.group.barrier(*arguments, **keywords)

    def alltoall_base(self, *arguments, **keywords):
        return self.group.all_to_all_single(*arguments, **keywords)

    def allgather_into_tensor_coalesced(self, *arguments, **keywords):
        return self.group.all_gather_single_coalesced(*arguments, **keywords)

    def reduce_scatter_tensor_coalesced(self, *arguments, **keywords):
        return self.group.reduce_scatter_single_coalesced(*arguments, **keywords)


def groups_of_python(rank, ranks):
    wrapper = Forwarding(dist.group.WORLD)

    def synchronous(options):
        options.asyncOp = False
        return options

    def finish(work):
        if work is not None:
            work.wait()

    mine, flat, part = tens(rank), torch.empty(4 * ranks), torch.empty(4)
    finish(wrapper.allreduce([mine], synchronous(c10d.AllreduceOptions())))
    assert torch.equal(mine, sum_of_tens(ranks))
    mine = tens(rank)
    options = synchronous(c10d.AllreduceCoalescedOptions())
    finish(wrapper.allreduce_coalesced([mine], options))
    assert torch.equal(mine, sum_of_tens(ranks))
    finish(wrapper.broadcast([mine], synchronous(c10d.BroadcastOptions())))
    finish(wrapper.barrier(synchronous(c10d.BarrierOptions())))
    # C++ calls the old names of these and uses the result as a work, unchecked.
    options = synchronous(c10d.AllToAllOptions())
    finish(wrapper.all_to_all_single(flat, tens(rank, 4 * ranks), [], [], options))
    expected = [my_part(tens(peer, 4 * ranks), rank, ranks) for peer in range(ranks)]
    assert torch.equal(flat, torch.cat(expected))
    options = synchronous(c10d.AllgatherOptions())
    finish(wrapper.all_gather_single_coalesced([flat], [tens(rank)], options))
    assert torch.equal(flat, all_tens(ranks))
    options = synchronous(c10d.ReduceScatterOptions())
    finish(wrapper.reduce_scatter_single_coalesced([part], [tens(rank, 4 * ranks)], options))
    assert torch.equal(part, my_part(sum_of_tens(ranks, 4 * ranks), rank, ranks))
    model = DistributedDataParallel(torch.nn.Linear(4, 1), process_group=wrapper)
    model(tens(rank)[None]).backward()
    assert torch.equal(model.module.weight.grad[0], sum_of_tens(ranks) / ranks)


CHECKS = [
    every_synchronous_call,
    calls_of_c_plus_plus,
    coalesced,
    messages,
    objects,
    monitored,
    functional_collectives,
    functional_gradients,
    differentiable_calls,
    distributed_tensors,
    dispatch_modes,
    compiled_alike,
    replicas,
    optimizer_states_in_shards,
    groups_of_python,
]


def all_checks(rank, ranks):
    run_in_turn(CHECKS, rank, ranks)


@pytest.mark.parametrize("ranks", hosts.ranks_or(2))
def test_layers(ranks):
    for out in jobs.run(all_checks, ranks):
        assert out.split() == [check.__name__ for check in CHECKS]


def checked_by_gloo(rank, ranks):
    """PyTorch compares the calls of all ranks before it forwards them to our backend."""
    faulthandler.dump_traceback_later(100, exit=True)
    torch.set_num_threads(1)
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=30))
    backend = dist.group.WORLD._get_backend(torch.device("cpu"))
    assert type(backend).__name__ == "_ProcessGroupWrapper", backend
    every_synchronous_call(rank, ranks)
    coalesced(rank, ranks)
    functional_collectives(rank, ranks)
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", hosts.ranks_or(2))
def test_with_pytorchs_checks(ranks):
    jobs.run(checked_by_gloo, ranks)
