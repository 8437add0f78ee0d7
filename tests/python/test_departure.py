# SPDX-License-Identifier: Apache-2.0
"""Ranks that leave a process group of the backend "memspan" while others wait for them, and its
creation over the store that is there."""

import atexit
import datetime
import os
import time

import jobs
from jobs import hosts
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native  # noqa: E402
from torch.distributed import distributed_c10d as c10d  # noqa: E402

AT_ONCE_S = 0.1
LIMIT = datetime.timedelta(seconds=60)


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def start():
    """The store, which goes when rank 0 does."""
    dist.init_process_group("memspan", timeout=LIMIT)
    dist.barrier()
    return c10d._get_default_store()


# ---- waits that end


def polls(leaver, group):
    work = dist.irecv(torch.ones(3), leaver, group=group)
    while not work.is_completed():
        pass
    work.wait()


WAITS = {
    "all_reduce": lambda leaver, group: dist.all_reduce(torch.ones(300_000), group=group),
    "asynchronous": lambda leaver, group: dist.all_reduce(
        torch.ones(3), group=group, async_op=True
    ).wait(),
    "broadcast": lambda leaver, group: dist.broadcast(torch.ones(3), leaver, group=group),
    "recv": lambda leaver, group: dist.recv(torch.ones(3), leaver, group=group),
    "send": lambda leaver, group: dist.send(torch.ones(300_000), leaver, group=group),
    "poll": polls,
}


def say_when():
    print(time.monotonic(), flush=True)


def leave_or_wait(store, leaves, name="all_reduce", group=None):
    """One rank leaves by ``leaves``; the others wait for it, and say when that ended."""
    rank, ranks, leaver = dist.get_rank(), dist.get_world_size(), int(os.environ["LEAVER"])
    if rank == leaver:
        store.wait([f"{name}/{r}" for r in range(ranks) if r != leaver])
        leaves()
    else:
        store.set(f"{name}/{rank}", "")
        with pytest.raises(RuntimeError, match=f"PE {leaver} .*left"):
            WAITS[name](leaver, group)
        say_when()


def fails(rank, ranks):
    def leaves():
        atexit.register(say_when)
        raise RuntimeError("as planned")

    leave_or_wait(start(), leaves)


def ends(rank, ranks):
    leave_or_wait(start(), lambda: atexit.register(say_when))


def destroys(rank, ranks):
    def leaves():
        say_when()
        dist.destroy_process_group()

    store = start()
    leave_or_wait(store, leaves)
    if rank != 0:
        store.set(f"told/{rank}", "")
    else:  # who has the store
        store.wait([f"told/{r}" for r in range(1, ranks)])


def destroys_one_after_another(rank, ranks):
    def leaves():
        say_when()
        dist.destroy_process_group(group)

    store = start()
    for name in WAITS:
        group = dist.new_group()
        leave_or_wait(store, leaves, name, group)
        dist.barrier()


def check_that_waits_end(function, ranks, leaver, **environment):
    found = jobs.Job(function, ranks, LEAVER=str(leaver), **environment).ends()
    expected = [1 if function is fails and rank == leaver else 0 for rank in range(ranks)]
    assert [code for code, _, _ in found] == expected, found
    when = [[float(line) for line in out.split()] for _, out, _ in found]
    for ended in when:
        assert len(ended) == len(when[leaver]), found
        assert max(a - b for a, b in zip(ended, when[leaver])) < AT_ONCE_S, found


def test_a_rank_that_destroys_its_group_ends_every_wait():
    check_that_waits_end(destroys_one_after_another, 2, 0)


@pytest.mark.parametrize("function", [fails, ends, destroys])
@pytest.mark.parametrize("is_last", [False, True])
@pytest.mark.parametrize("ranks", hosts.ranks_or(3))
def test_a_rank_ends_the_waits_of_all_others_however_it_leaves(ranks, is_last, function):
    check_that_waits_end(function, ranks, ranks - 1 if is_last else 0)


def leaves_because_of_the_last(rank, ranks):
    """The one before the last leaves when it has seen that the last did; then the others wait for both."""
    store = start()
    last = ranks - 1
    if rank >= last - 1:
        if rank != last:
            store.wait([f"left/{last}"])
            with pytest.raises(RuntimeError, match=f"PE {last} .*left"):
                dist.recv(torch.ones(3), last)
        dist.destroy_process_group()
        store.set(f"left/{rank}", "")
    else:
        store.wait([f"left/{last - 1}"])
        with pytest.raises(RuntimeError, match=f"PE {last} .*left"):
            dist.all_reduce(torch.ones(3))
    store.set(f"done/{rank}", "")
    if rank == 0:  # who has the store
        store.wait([f"done/{r}" for r in range(ranks)])


@pytest.mark.parametrize("ranks", hosts.ranks_or(3, 4))
def test_who_left_first_is_named(ranks):
    """Others may have left because of it."""
    jobs.run(leaves_because_of_the_last, ranks)


# ---- what was done stays


def starts_and_ends(rank, ranks):
    store = start()
    values = torch.full((300_000,), rank + 1.0)
    if rank == 0:
        dist.all_reduce(values, async_op=True)
        atexit.register(lambda: store.set("ends", ""))
        return
    # The first one's script is over, and it waits for us.
    store.wait(["ends"])
    dist.all_reduce(values)
    assert values.eq(sum(range(1, ranks + 1))).all()
    with pytest.raises(RuntimeError, match="PE 0 .*left"):
        dist.all_reduce(values)


def sends_and_leaves(rank, ranks):
    store = start()
    if rank == 0:
        for other in range(1, ranks):
            dist.send(torch.full((100,), float(other)), other)
        dist.destroy_process_group()
        store.set("left", "")
        store.wait([f"done/{r}" for r in range(1, ranks)])
        return
    store.wait(["left"])
    got = torch.empty(100)
    assert dist.recv(got, None if rank == 1 else 0) == 0
    assert got.eq(rank).all()
    if ranks > 2:
        # Those who stay have each other.
        after, before = (2, 2) if rank == 1 else (1, 1)
        work = dist.isend(torch.full((3,), float(rank)), after)
        dist.recv(got[:3], before)
        work.wait()
        assert got[:3].eq(before).all()
    with pytest.raises(RuntimeError, match="PE 0 .*left"):
        dist.recv(got, 0)
    store.set(f"done/{rank}", "")


@pytest.mark.parametrize("function", [starts_and_ends, sends_and_leaves])
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_a_rank_did_before_it_left_stays_with_the_others(ranks, function):
    jobs.run(function, ranks)


def forks(rank, ranks):
    """A child's end is none of its parent's."""
    start()
    child = os.fork()
    if child == 0:
        return
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    dist.barrier()


def test_the_end_of_a_child_leaves_no_group():
    jobs.run(forks, 2)


# ---- creation


def connections_to(port):
    """Of any process here, also those that are over: they are kept for a minute."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(table) as lines:
            for line in list(lines)[1:]:
                _, local, remote = line.split()[:3]
                if int(remote.split(":")[1], 16) == port:
                    found.add((local, remote))
    return found


def begins_again(rank, ranks):
    store = dist.TCPStore(
        hosts.ADDRESS, int(os.environ["MASTER_PORT"]), ranks, rank == 0, timeout=LIMIT
    )
    store.set(f"here/{rank}", "")
    store.wait([f"here/{r}" for r in range(ranks)])
    before = connections_to(store.port)
    begin = time.monotonic()
    for times in range(50):
        dist.init_process_group(
            "memspan", rank=rank, world_size=ranks, timeout=LIMIT,
            store=dist.PrefixStore(str(times), store),
        )  # fmt: skip
        one = torch.ones(1)
        dist.all_reduce(one)
        assert one.item() == ranks
        dist.barrier(dist.new_group())
        dist.destroy_process_group()
    assert time.monotonic() - begin < 30
    assert connections_to(store.port) == before
    if rank != 0:
        store.set("done", "")
    else:  # who has the store
        store.wait(["done"])


def test_groups_use_the_connection_of_the_store_that_is_there():
    jobs.run(begins_again, 2)

