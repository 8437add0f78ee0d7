# SPDX-License-Identifier: Apache-2.0
"""Callbacks of works' futures that start collectives and wait for them, also when a rank is late."""

import datetime
import faulthandler
import itertools

import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native  # noqa: E402
from process_groups import losses, transformer  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")



def _late_and_nested(rank, how):
    """Rank 1 comes when rank 0's works are queued; the callback's are behind another."""
    store = dist.distributed_c10d._get_default_store()
    totals = []

    def total(value):
        tensor = torch.full((3,), float(value))
        if how == "at once":
            dist.all_reduce(tensor)
        else:
            work = dist.all_reduce(tensor, async_op=True)
            (work if how == "work" else work.get_future()).wait()
        totals.append(tensor[0].item())

    def nested(future):
        total(2)
        work = dist.all_reduce(torch.full((3,), 4.0), async_op=True)
        then = work.get_future().then(lambda done: (total(8), totals.append(done.value()[0][0].item())))
        then.wait()
        return future.value()

    first, second = torch.ones(3), torch.ones(5)
    if rank == 1:
        store.wait([f"queued {how}"])
    works = [dist.all_reduce(first, async_op=True), dist.all_reduce(second, async_op=True)]
    then = works[0].get_future().then(nested)
    if rank == 0:
        store.set(f"queued {how}", "")
    then.wait()
    works[1].wait()
    assert totals == [4, 16, 8] and first[0] == second[0] == 2, totals


def callbacks_start_collectives(rank, ranks):
    faulthandler.dump_traceback_later(40, exit=True)
    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=20))
    for how in ("at once", "work", "future"):
        _late_and_nested(rank, how)
    dist.destroy_process_group()


def test_callbacks_start_collectives_when_a_rank_is_late():
    jobs.run(callbacks_start_collectives, 2)


def learns_with_power_sgd(rank, ranks):
    faulthandler.dump_traceback_later(60, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
    store = dist.distributed_c10d._get_default_store()
    steps = itertools.count()

    def late(state, bucket):
        key = f"queued {next(steps)}"
        if rank == 1:
            store.wait([key])
        future = powerSGD_hook.powerSGD_hook(state, bucket)
        if rank == 0:
            store.set(key, "")
        return future

    curves = {}
    for name in ("gloo", "memspan"):
        group = dist.new_group(backend=name)
        torch.manual_seed(0)
        model = DistributedDataParallel(transformer(), process_group=group)
        state = powerSGD_hook.PowerSGDState(group, start_powerSGD_iter=2, min_compression_rate=0.5)
        model.register_comm_hook(state, late if name == "memspan" else powerSGD_hook.powerSGD_hook)
        curves[name] = losses(model, rank, 6)
    assert curves["memspan"] == pytest.approx(curves["gloo"], rel=1e-5)
    dist.destroy_process_group()


def test_power_sgd_learns_when_a_rank_is_late():
    jobs.run(learns_with_power_sgd, 2)
