# SPDX-License-Identifier: Apache-2.0
"""reduce_after_backward(): DistributedDataParallel with its all-reduces behind the computation."""

import datetime
import os
import time

import jobs
import pytest
from jobs import hosts

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native, reduce_after_backward  # noqa: E402
from process_groups import losses, run_in_turn, transformer  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

MANY_BUCKETS_MB = 0.01


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def parallel(module, **options):
    model = DistributedDataParallel(module, bucket_cap_mb=MANY_BUCKETS_MB, **options)
    reduce_after_backward(model)
    return model


def gradients(model):
    return torch.cat([p.grad.to_dense().flatten() for p in model.parameters()])


def check_average(module, batch, got):
    """That every rank got the same bits, and the average of what each computes by itself."""
    module.zero_grad()
    module(batch).sum().backward()
    mine = gradients(module)
    dist.all_reduce(mine, op=dist.ReduceOp.AVG)
    assert torch.allclose(got, mine, rtol=1e-5, atol=1e-7)
    root = got.clone()
    dist.broadcast(root, 0)
    assert torch.equal(got, root)


def learns_as_with_gloo(rank, ranks):
    gloo = dist.new_group(backend="gloo")
    expected = losses(DistributedDataParallel(transformer(), process_group=gloo), rank, 8)
    assert expected[-1] < expected[0]
    for is_view in (False, True):
        model = parallel(transformer(), gradient_as_bucket_view=is_view)
        assert losses(model, rank, 8) == pytest.approx(expected, rel=1e-5)
    dist.destroy_process_group(gloo)


def reduces_when_all_gradients_are_there(rank, ranks):
    torch.manual_seed(rank)
    batch = torch.randn(4, 32)
    torch.manual_seed(7)
    module = torch.nn.Sequential(*(torch.nn.Linear(32, 32) for _ in range(6)))
    model, order, all_reduce = parallel(module), [], dist.all_reduce
    for parameter in module.parameters():
        parameter.register_hook(lambda _: order.append("gradient"))

    def noted(*arguments, **options):
        order.append("reduction")
        return all_reduce(*arguments, **options)

    dist.all_reduce = noted
    try:
        for _ in range(2):  # the first has one bucket
            module.zero_grad()
            order.clear()
            model(batch).sum().backward()
        reductions = order.count("reduction")
        assert reductions > 1 and order == ["gradient"] * 12 + ["reduction"] * reductions
    finally:
        dist.all_reduce = all_reduce
    check_average(module, batch, gradients(module))


def reduces_what_is_accumulated(rank, ranks):
    module = torch.nn.Linear(8, 8)
    with torch.no_grad():
        module.weight.fill_(1)
        module.bias.fill_(1)
    model, batch = parallel(module), torch.full((2, 8), rank + 1.0)
    with model.no_sync():
        model(batch).sum().backward()
    assert torch.equal(module.weight.grad, torch.full((8, 8), 2.0 * (rank + 1)))
    model(batch).sum().backward()
    assert torch.equal(module.weight.grad, torch.full((8, 8), 2.0 * (ranks + 1)))


def two_models_share_a_backward(rank, ranks):
    """The backward of the sum goes through their layers in turn; one has another group."""
    groups = (None, dist.new_group())
    batch = torch.full((3, 16), rank + 1.0)
    modules = [torch.nn.Sequential(*(torch.nn.Linear(16, 16) for _ in range(4))) for _ in groups]
    for module in modules:
        for parameter in module.parameters():
            dist.broadcast(parameter.data, 0)
    models = [parallel(each, process_group=group) for each, group in zip(modules, groups)]
    for _ in range(2):
        for module in modules:
            module.zero_grad()
        sum(model(batch).sum() for model in models).backward()
    for module in modules:
        check_average(module, batch, gradients(module))
    dist.destroy_process_group(groups[1])


def sparse_gradients(rank, ranks):
    torch.manual_seed(3)
    module = torch.nn.Sequential(torch.nn.Embedding(10, 4, sparse=True), torch.nn.Linear(4, 4))
    model, words = parallel(module), torch.tensor([rank, rank + 1])
    model(words).sum().backward()
    assert module[0].weight.grad.is_sparse
    check_average(module, words, gradients(module))


def ranks_have_uneven_inputs(rank, ranks):
    module = torch.nn.Linear(4, 4)
    with torch.no_grad():
        module.weight.zero_()
        module.bias.zero_()
    model, steps = parallel(module), 0
    with model.join():
        for _ in range(rank + 1):
            module.zero_grad()
            model(torch.ones(1, 4)).sum().backward()
            steps += 1
            others = sum(steps <= each + 1 for each in range(ranks))
            assert torch.equal(module.bias.grad, torch.full((4,), others / ranks))


CHECKS = [
    learns_as_with_gloo,
    reduces_when_all_gradients_are_there,
    reduces_what_is_accumulated,
    two_models_share_a_backward,
    sparse_gradients,
    ranks_have_uneven_inputs,
]


def everything(rank, ranks):
    run_in_turn(CHECKS, rank, ranks)


@pytest.mark.parametrize("ranks", hosts.ranks_or(2))
def test_everything(ranks):
    jobs.run(everything, ranks)


def trains_beside_the_dead(rank, ranks):
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    model, batch = parallel(transformer()), torch.ones(2, 5, dtype=torch.long)
    model(batch).sum().backward()
    if rank == 1:
        os._exit(3)
    begin = time.monotonic()
    with pytest.raises(RuntimeError, match="PE 1 .*died"):
        for _ in range(2):  # the first may still have found what rank 1 had put
            model(batch).sum().backward()
    assert time.monotonic() - begin < 10
    os._exit(0)


def test_the_death_of_a_rank_ends_backward():
    ends = jobs.Job(trains_beside_the_dead, 2).ends()
    assert [code for code, _, _ in ends] == [0, 3], ends
