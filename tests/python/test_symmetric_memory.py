# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own symmetric memory on the CPU: memory, handles, signals. Operations on it are in
test_symmetric_operations.py."""

import os
import signal
import subprocess
import sys
import time

import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402
from memspan.errors import Error, PeerFailed, Timeout  # noqa: E402
from memspan.torch import native  # noqa: E402
from symmetric import GUARD, SOON_S, TYPES, numbers, one_host, start, symmetric  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """Compiled ahead of the jobs, whose time is short."""
    for name in ("symmetric_memory", "process_group"):
        native.build(name)


def pad_is_clear(handle):
    return not handle.get_signal_pad(handle.rank, dtype=torch.int32).any()


def handles(group):
    rank, ranks = group.rank(), group.size()
    assert symm_mem.get_backend("cpu") == "MEMSPAN"
    assert symm_mem.rendezvous(torch.zeros(3), group) is None
    for dtype in TYPES:
        mine = symm_mem.empty(3, 5, dtype=dtype, device="cpu")
        assert symm_mem.is_symm_mem_tensor(mine) and mine.is_contiguous() and not mine.any()
        handle = symm_mem.rendezvous(mine, group)
        assert symm_mem.rendezvous(mine, group.group_name).buffer_ptrs == handle.buffer_ptrs
        size = 15 * dtype.itemsize
        assert (handle.rank, handle.world_size) == (rank, ranks)
        assert (handle.buffer_size, handle.offset) == (size, 0)
        assert handle.device == torch.device("cpu") and handle.multicast_ptr == 0
        assert handle.buffer_ptrs[rank] == mine.data_ptr()
        assert len(set(handle.buffer_ptrs + handle.signal_pad_ptrs)) == 2 * ranks
        mine.copy_(numbers((3, 5), dtype, rank))
        handle.barrier()
        for peer in range(ranks):
            theirs = numbers((3, 5), dtype, peer)
            assert torch.equal(handle.get_buffer(peer, (3, 5), dtype), theirs)
            assert torch.equal(
                handle.get_buffer(peer, (2, 2), dtype, 7), theirs.view(-1)[7:11].view(2, 2)
            )
            assert torch.equal(handle.get_remote_tensor(peer, (15,), dtype), theirs.view(-1))
            assert handle.get_buffer(peer, (0, 4), dtype, 15).shape == (0, 4)
            assert handle.get_buffer(peer, (), dtype, 14) == theirs[2, 4]
        remote = torch.ops.symm_mem.get_remote_tensors(mine[1:], group.group_name)
        assert torch.equal(
            remote[(rank + 1) % ranks], numbers((3, 5), dtype, (rank + 1) % ranks)[1:]
        )
        handle.barrier()
    for wrong in [(ranks, (1,)), (-1, (1,)), (0, (16,)), (0, (2, -1)), (0, (1 << 40, 1 << 40))]:
        with pytest.raises(ValueError, match="allowed|asked|sizes"):
            handle.get_buffer(*wrong, torch.complex64)
    for offset in (-1, 15, 1 << 61):
        with pytest.raises(ValueError, match="are asked for, and the data has 120"):
            handle.get_buffer(0, (1,), torch.complex64, offset)
    with pytest.raises(ValueError, match="128 bytes are asked for, and there are 120"):
        handle.get_remote_tensor(0, (16,), torch.complex64)
    # Rounded up to whole pages, memory of no bytes is none that another one could have.
    nothing = symm_mem.empty(0, device="cpu")
    assert symm_mem.rendezvous(nothing, group).buffer_size == 0


def sizes_that_differ(group):
    tensor = symm_mem.empty(10 + 10000 * group.rank(), device="cpu")
    with pytest.raises(ValueError):
        symm_mem.rendezvous(tensor, group)
    with pytest.raises(ValueError, match="neither the call nor the allocation says which group"):
        torch._C._distributed_c10d._SymmetricMemory.rendezvous(tensor)


def lasting(group):
    """Memory lives as long as anything of it, and no longer."""
    rank, ranks = group.rank(), group.size()
    peer = (rank + 1) % ranks

    def one(round):
        tensor = symm_mem.empty(1 << 18, device="cpu")
        tensor.fill_(100 * round + rank)
        handle = symm_mem.rendezvous(tensor, group)
        handle.barrier()
        view = handle.get_buffer(peer, (1 << 18,), torch.float32)
        mine = handle.get_buffer(rank, (2,), torch.float32)
        pad = handle.get_signal_pad(peer)
        del tensor, handle
        dist.barrier(group)
        assert view.min() == view.max() == 100 * round + peer and (mine == 100 * round + rank).all()
        dist.barrier(group)
        view[rank] = -rank
        assert view[rank] == -rank and not pad.view(torch.int32).any()
        dist.barrier(group)

    one(0)
    before = shared_mappings()
    for round in range(1, 20):
        one(round)
    assert shared_mappings() == before
    # What a process group had goes with it.
    kept = symm_mem.empty(1, device="cpu")
    counts = []
    for _ in range(4):
        few = dist.new_group(list(range(ranks)))
        symm_mem.rendezvous(kept, few)
        torch.ops.symm_mem.one_shot_all_reduce(kept, "sum", few.group_name)
        dist.destroy_process_group(few)
        del few
        counts.append(shared_mappings())
    assert counts[1:] == counts[:-1]


def pads(group):
    rank, ranks = group.rank(), group.size()
    usual = symm_mem.get_signal_pad_size()
    first = symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), group)
    symm_mem.set_signal_pad_size(2 * usual)
    second = symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), group)
    assert first.get_signal_pad(rank).numel() * 4 == usual
    assert second.get_signal_pad(rank).numel() * 4 == 2 * usual
    assert (
        second.get_signal_pad(rank, dtype=torch.int64, storage_offset=3).numel() == usual // 4 - 3
    )
    last = second.get_signal_pad((rank + 1) % ranks, (2, 2), torch.uint32, usual // 2 - 4)
    assert last.shape == (2, 2) and last.dtype == torch.uint32
    with pytest.raises(ValueError, match="the signal pad has"):
        first.get_signal_pad(rank, (1,), torch.uint32, usual // 4)
    with pytest.raises(RuntimeError, match="after this memory was allocated"):
        first.signal_pad_ptrs
    symm_mem.set_signal_pad_size(usual)
    channels = usual // 4 // ranks
    first.barrier(channels - 1)
    for wrong in (-1, channels):
        with pytest.raises(ValueError, match=f"allowed are 0 to {channels - 1}"):
            first.barrier(wrong)
        with pytest.raises(ValueError, match=f"channel is {wrong}"):
            first.put_signal(0, wrong)
    with pytest.raises(ValueError, match=f"rank is {ranks}"):
        first.wait_signal(ranks)
    second.barrier(2 * channels - 1)
    assert pad_is_clear(first) and pad_is_clear(second)


def interrupt(number, frame):
    raise InterruptedError("an alarm")


def signals(group):
    rank, ranks = group.rank(), group.size()
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    mine = symm_mem.empty(1000, dtype=torch.int64, device="cpu")
    handle = symm_mem.rendezvous(mine, group)
    inbox = handle.get_buffer(after, (1000,), torch.int64)
    # Data before the signal; no second signal before the first is waited for.
    for round in range(300):
        inbox.fill_(1000 * round + rank)
        handle.put_signal(after, channel=1)
        handle.wait_signal(before, channel=1)
        assert (mine == 1000 * round + before).all()
        handle.put_signal(before, channel=2)
        handle.wait_signal(after, channel=2)
    # Channels, and senders, do not touch each other.
    handle.put_signal(after, channel=5)
    for channel, sender in ((4, before), (5, rank)):
        if ranks > 1:
            begin = time.monotonic()
            with pytest.raises(
                Timeout, match=f"no signal of rank {sender} came on channel {channel}"
            ):
                handle.wait_signal(sender, channel, timeout_ms=30)
            assert 0.03 <= time.monotonic() - begin < SOON_S
    with pytest.raises(TimeoutError, match=f"rank {after} did not wait .* within 20 ms"):
        handle.put_signal(after, channel=5, timeout_ms=20)
    handle.barrier(channel=3)
    handle.wait_signal(before, channel=5)
    for _ in range(100):
        handle.barrier()
    handle.put_signal(rank, 7)
    handle.wait_signal(rank, 7)
    # Python's functions for signals run during a wait.
    usual = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    begin = time.monotonic()
    with pytest.raises(InterruptedError, match="an alarm"):
        handle.wait_signal(before, channel=6)
    assert time.monotonic() - begin < SOON_S
    signal.signal(signal.SIGALRM, usual)
    # The module's functions.
    symm_mem.put_signal(torch.full((10,), rank), handle, after)
    symm_mem.wait_signal(handle, before)
    assert (mine[:10] == before).all()
    torch.ops.symm_mem._barrier(handle.boxed())
    assert pad_is_clear(handle)


def signals_of_two_groups(group):
    """A signal of one group is not one of another group of the same ranks on the same tensor."""
    rank, ranks = group.rank(), group.size()
    if ranks == 1:
        return
    mine = symm_mem.empty(10, device="cpu")
    first = symm_mem.rendezvous(mine, group)
    second = symm_mem.rendezvous(mine, dist.new_group(backend=dist.get_backend(group)))
    assert first.buffer_ptrs[rank] == second.buffer_ptrs[rank]
    assert not set(first.signal_pad_ptrs) & set(second.signal_pad_ptrs)
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    first.put_signal(after, channel=2)
    first.barrier()
    with pytest.raises(Timeout, match=f"no signal of rank {before} came on channel 2"):
        second.wait_signal(before, channel=2, timeout_ms=30)
    first.barrier()
    second.put_signal(after, channel=2, timeout_ms=1000)
    first.wait_signal(before, channel=2)
    second.wait_signal(before, channel=2)
    first.barrier()
    assert pad_is_clear(first) and pad_is_clear(second)


def words(group):
    tensor = torch.zeros(8, dtype=torch.uint32)
    torch._C._distributed_c10d._SymmetricMemory.memset32(tensor, 2, (1 << 32) - 1, 3)
    torch._C._distributed_c10d._SymmetricMemory.stream_write_value32(tensor, 7, 5)
    assert tensor.tolist() == [0, 0, (1 << 32) - 1, (1 << 32) - 1, (1 << 32) - 1, 0, 0, 5]
    for wrong in [
        (tensor, 6, 1, 3),
        (tensor, 0, -1, 1),
        (tensor.int(), 0, 0, 1),
        (tensor, 0, 0, 0),
    ]:
        with pytest.raises(ValueError, match="memset32_"):
            torch.ops.symm_mem.memset32_(*wrong)
    with pytest.raises(ValueError, match="stream_write_value32_"):
        torch.ops.symm_mem.stream_write_value32_(tensor, 8, 1)


def workspaces(group):
    rank, ranks = group.rank(), group.size()
    small = symm_mem.get_symm_mem_workspace(group.group_name, 100)
    again = symm_mem.get_symm_mem_workspace(group.group_name, 50)
    assert small.buffer_size >= 100 and again.buffer_ptrs == small.buffer_ptrs
    large = symm_mem.get_symm_mem_workspace(group.group_name, 1 << 20)
    assert large.buffer_size >= 1 << 20
    large.get_buffer(rank, (4,), torch.int32).fill_(rank)
    large.barrier()
    assert (
        large.get_buffer((rank + 1) % ranks, (4,), torch.int32).tolist() == [(rank + 1) % ranks] * 4
    )
    large.barrier()


CHECKS = [handles, sizes_that_differ, lasting, pads, signals, signals_of_two_groups, words, workspaces]


def everything(rank, ranks):
    group = start()
    for check in CHECKS:
        check(group)
    # Groups of some, that overlap, with members in another order, and of one.
    alone = [dist.new_group([peer]) for peer in range(ranks)][rank]
    outer = dist.new_group([ranks - 1, 0], sort_ranks=False)
    for check in (handles, signals):
        check(alone)
        if rank in (0, ranks - 1):
            check(outer)
    # A process group that has the name of one that is gone, of another backend.
    dist.destroy_process_group()
    again = f"tcp://{jobs.hosts.ADDRESS}:{os.environ['SECOND_PORT']}"
    dist.init_process_group("memspan", init_method=again, rank=rank, world_size=ranks)
    for check in (handles, lasting, workspaces):
        check(dist.group.WORLD)
    dist.destroy_process_group()


@one_host
@pytest.mark.parametrize("ranks", [2, 3])
def test_memory(ranks):
    jobs.run(everything, ranks, SECOND_PORT=str(jobs.free_port()))


def threads_and_descriptors():
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


def await_at_most(threads, descriptors):
    """The event thread may still be closing the connection by which a peer fetched memory."""
    end = time.monotonic() + SOON_S
    while (found := threads_and_descriptors()) != (threads, min(found[1], descriptors)):
        assert time.monotonic() < end, f"{found}, at most {(threads, descriptors)} expected"
        time.sleep(0.01)


def shared_mappings():
    with open("/proc/self/maps", encoding="ascii") as maps:
        return sum("memspan-shareable" in line for line in maps)


def one_group(rank, ranks):
    """A process group of memspan and its symmetric memory are one memspan group."""
    group = start("memspan")
    store = dist.distributed_c10d._get_default_store()
    peer = (rank + 1) % ranks
    tensors = [symm_mem.empty(4, device="cpu") for _ in range(2)]
    dist.barrier()
    threads, descriptors = threads_and_descriptors()
    handle = symm_mem.rendezvous(tensors[0], group)
    await_at_most(threads, descriptors + 1)  # the pad's
    # A mapping is one of the group's collectives: it takes its turn behind those under way.
    if rank == 1:
        store.wait(["queued"])
    one = torch.ones(3)
    work = dist.all_reduce(one, async_op=True)
    if rank == 0:
        store.set("queued", "")
    symm_mem.rendezvous(tensors[1], group)
    assert work.is_completed() and one[0] == ranks
    tensors[0].fill_(rank)
    handle.barrier()
    view = handle.get_buffer(peer, (4,), torch.float32)
    # The memory outlives the process group, its signals do not. What is freed then is unmapped.
    dist.barrier()
    dist.destroy_process_group()
    assert view.eq(peer).all()
    with pytest.raises(Error, match="left the group"):
        handle.put_signal(peer)
    mapped = shared_mappings()
    del tensors[1]
    assert shared_mappings() == mapped - 2 * ranks  # its memory and its pads
    assert view.eq(peer).all()


@one_host
def test_a_process_group_of_memspan_shares_its_group():
    jobs.run(one_group, 2)


def death(rank, ranks):
    group = start()
    tensor, _ = symmetric((4,), torch.float32, group)
    handle = symm_mem.rendezvous(tensor, group)
    handle.barrier()
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    if rank == 0:
        handle.wait_signal(1, 3)  # rank 1 sees the death before it sends this one
    with pytest.raises(PeerFailed, match="no signal of rank 2 came on channel 0: .*died"):
        handle.wait_signal(2)
    if rank == 1:
        handle.put_signal(0, 3)
    assert time.monotonic() - begin < SOON_S
    # The memory of the dead is still there.
    assert handle.get_buffer(2, (4,), torch.float32)[0] == GUARD
    os._exit(0)  # gloo would wait for the dead


@one_host
def test_the_death_of_a_rank():
    ends = jobs.Job(death, 3).ends()
    assert ends[2][0] == -signal.SIGKILL
    for code, out, err in ends[:2]:
        assert code == 0, f"{out}\n{err}"


def test_without_the_extension():
    """What cannot be built is said, and PyTorch stays as it is."""
    code = (
        "import memspan.torch, torch\n"
        "try:\n"
        "    memspan.torch.enable_symmetric_memory()\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "import torch.distributed._symmetric_memory as symm_mem\n"
        "print(symm_mem.get_backend('cpu'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MEMSPAN_TORCH_BUILD_DIR": "none"},
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
        check=True,
    )
    assert done.stdout.splitlines() == [
        'symmetric memory of PyTorch: MEMSPAN_TORCH_BUILD_DIR is "none"',
        "None",
    ]
