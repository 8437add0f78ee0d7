# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own symmetric memory on the CPU. What every rank has is known to all by its seed, so
that results are compared with what one process computes, or with gloo's."""

import contextlib
import math
import os
import queue
import signal
import subprocess
import sys
import threading
import time
import zlib
from datetime import timedelta

import jobs
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not here; test.sh --torch installs it")

import memspan.torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402
from memspan.errors import Error, PeerFailed, Timeout  # noqa: E402
from memspan.torch import native  # noqa: E402

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64]
TYPES += [torch.uint8, torch.complex64]
HALVES = (torch.bfloat16, torch.float16)
GUARD = 77
SOON_S = 10  # what takes longer did not see a death


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """Compiled ahead of the jobs, whose time is short."""
    for name in ("symmetric_memory", "process_group"):
        native.build(name)


def numbers(shape, dtype, *seed):
    """What the rank of that seed has."""
    generator = torch.Generator().manual_seed(zlib.crc32(repr(seed).encode()))
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 9, shape, generator=generator).to(dtype)


def start(backend="gloo", **options):
    torch.set_num_threads(1)
    dist.init_process_group(backend, **options)
    memspan.torch.enable_symmetric_memory()
    memspan.torch.enable_symmetric_memory()
    return dist.group.WORLD


def symmetric(shape, dtype, group, around=0):
    """A tensor, and all of its memory, which has so many guards before and after it."""
    count = math.prod(shape)
    whole = symm_mem.empty(count + 2 * around, dtype=dtype, device="cpu")
    symm_mem.rendezvous(whole, group)
    whole.fill_(GUARD)
    return whole[around : around + count].view(shape), whole


def check_guards(tensor, whole, around):
    assert (whole[:around] == GUARD).all() and (whole[around + tensor.numel() :] == GUARD).all()


def pad_is_clear(handle):
    return not handle.get_signal_pad(handle.rank, dtype=torch.int32).any()


# ---- memory and handles


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

    def mappings():
        with open("/proc/self/maps", encoding="ascii") as maps:
            return sum("memspan-shareable" in line for line in maps)

    one(0)
    before = mappings()
    for round in range(1, 20):
        one(round)
    assert mappings() == before
    # What a process group had goes with it.
    kept = symm_mem.empty(1, device="cpu")
    counts = []
    for _ in range(4):
        few = dist.new_group(list(range(ranks)))
        symm_mem.rendezvous(kept, few)
        torch.ops.symm_mem.one_shot_all_reduce(kept, "sum", few.group_name)
        dist.destroy_process_group(few)
        del few
        counts.append(mappings())
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


# ---- reductions


def combined(parts, op):
    """In the order of ranks, halves as floats, rounded once."""
    dtype = parts[0].dtype
    parts = [part.float() if dtype in HALVES else part for part in parts]
    result = parts[0].clone()
    for part in parts[1:]:
        if op in ("sum", "avg"):
            result = result + part
        elif op == "product":
            result = result * part
        else:
            result = torch.minimum(result, part) if op == "min" else torch.maximum(result, part)
    return (result / len(parts) if op == "avg" else result).to(dtype)


def ops_of(dtype):
    ops = ["sum", "product"]
    if not dtype.is_complex:
        ops += ["min", "max"]
    return ops + ["avg"] if dtype.is_floating_point or dtype.is_complex else ops


def all_reduces(group):
    rank, ranks, name = group.rank(), group.size(), group.group_name
    ops = torch.ops.symm_mem
    for dtype in TYPES:
        for shape in [(1,), (7, 3), (200_003,), (0,)]:
            large = math.prod(shape) > 1000
            for op in ops_of(dtype) if not large else ["sum"]:
                mine, whole = symmetric(shape, dtype, group, around=9)
                parts = [numbers(shape, dtype, peer, op) for peer in range(ranks)]
                expected = combined(parts, op)
                mine.copy_(parts[rank])
                out = torch.empty_like(mine)
                assert torch.equal(ops.one_shot_all_reduce(mine, op, name), expected)
                assert ops.one_shot_all_reduce_out(mine, op, name, out) is out
                assert torch.equal(out, expected) and torch.equal(mine, parts[rank])
                out.zero_()
                ops.two_shot_all_reduce_out(mine, op, name, out)
                assert torch.equal(out, expected)
                mine.copy_(parts[rank])
                assert ops.two_shot_all_reduce_(mine, op, name) is mine
                assert torch.equal(mine, expected)
                mine.zero_()
                assert torch.equal(
                    ops.one_shot_all_reduce_copy(mine, parts[rank], op, name), expected
                )
                some = parts[rank].view(-1)[: mine.numel() // 2]
                out = torch.empty_like(some)
                ops.one_shot_all_reduce_copy_out(mine, some, op, name, out)
                assert torch.equal(out, expected.view(-1)[: mine.numel() // 2])
                check_guards(mine, whole, 9)


@contextlib.contextmanager
def refused(group, mistake, here):
    """All ranks get a ValueError, and those other than the last one are told who was wrong."""
    with pytest.raises(ValueError, match=here if is_last(group) else mistake):
        yield


def is_last(group):
    return group.rank() == group.size() - 1


def wrong_reductions(group):
    """The last rank's arguments are wrong, the next call is right on all."""
    name = group.group_name
    last = group.size() - 1
    mine, whole = symmetric((4, 6), torch.float32, group, around=2)
    other, _ = symmetric((4, 6), torch.float32, group)
    out = torch.zeros(4, 6)
    ops = torch.ops.symm_mem

    def right_again():
        mine.fill_(2)
        assert (ops.one_shot_all_reduce(mine, "sum", name) == 2 * group.size()).all()
        check_guards(mine, whole, 2)

    right_again()
    with refused(group, f"rank {last} refused a call: input is not contiguous", "not contiguous"):
        ops.two_shot_all_reduce_(mine.t() if is_last(group) else mine, "sum", name)
    with refused(group, f"rank {last} refused", "allowed are sum, avg, min, max and product"):
        ops.one_shot_all_reduce(mine, "add" if is_last(group) else "sum", name)
    with refused(group, f"rank {last} refused", "out has the shape"):
        ops.one_shot_all_reduce_out(mine, "sum", name, out[:3] if is_last(group) else out)
    with refused(group, f"rank {last} refused", "local_input has 24 elements of Double"):
        local = out.double() if is_last(group) else out
        ops.one_shot_all_reduce_copy(mine, local, "sum", name)
    with refused(group, f"rank {last} refused", "input is no symmetric memory"):
        ops.two_shot_all_reduce_(out if is_last(group) else mine, "sum", name)
    with pytest.raises(ValueError, match="output has the shape|allowed are multiples of"):
        ops.reduce_scatter_out(mine, name, True, out)
    # What is right everywhere, but not the same.
    if last > 0:
        with pytest.raises(ValueError, match="the ranks' calls differ: .*(max.*sum|sum.*max)"):
            ops.two_shot_all_reduce_(mine, "max" if is_last(group) else "sum", name)
        with pytest.raises(ValueError, match="the ranks' calls differ"):
            ops.two_shot_all_reduce_(mine[1:] if is_last(group) else mine[:3], "sum", name)
        with pytest.raises(ValueError, match="the ranks' calls differ"):
            ops.one_shot_all_reduce(other if is_last(group) else mine, "sum", name)
    right_again()


def reduce_scatters(group):
    rank, ranks, name = group.rank(), group.size(), group.group_name
    for dtype in TYPES:
        flat, whole = symmetric((6 * ranks,), dtype, group, around=3)
        parts = [numbers((6 * ranks,), dtype, peer) for peer in range(ranks)]
        expected = combined(parts, "sum")
        flat.copy_(parts[rank])
        out = torch.empty(6, dtype=dtype)
        torch.ops.symm_mem.reduce_scatter_out(flat, name, False, out)
        assert torch.equal(out, expected[rank * 6 : rank * 6 + 6])
        columns = flat.view(3, 2 * ranks)
        out = torch.empty(3, 2, dtype=dtype)
        torch.ops.symm_mem.reduce_scatter_out(columns, name, True, out)
        assert torch.equal(out, expected.view(3, ranks, 2)[:, rank])
        check_guards(flat, whole, 3)
        # Blocks of any size, to anybody.
        if dtype.is_complex:
            continue
        block, _ = symmetric((5, 7), dtype, group)
        parts = [numbers((5, 7), dtype, peer) for peer in range(ranks)]
        block.copy_(parts[rank])
        for dim, offsets in ((0, [2, 2, 5]), (1, [1, 4, 6])):
            bounds = [0, *offsets]
            owned = [index for index in range(3) if index % ranks == rank]
            sums = combined(parts, "sum").tensor_split(bounds[1:], dim)
            outs = [torch.empty_like(sums[index]).contiguous() for index in owned]
            symm_mem.reduce_scatter_offset(block, outs, name, dim=dim, offsets=offsets)
            for index, out in zip(owned, outs):
                assert torch.equal(out, sums[index])
    with pytest.raises(ValueError, match="offsets is|refused"):
        symm_mem.reduce_scatter_offset(block, [], name, dim=0, offsets=[3, 9])


def all_to_alls(group):
    rank, ranks, name = group.rank(), group.size(), group.group_name
    rows = 5 * ranks
    for dtype in (torch.float32, torch.bfloat16, torch.uint8):
        mine, whole = symmetric((rows, 3), dtype, group, around=6)
        out, guarded = symmetric((rows * ranks, 3), dtype, group, around=6)
        splits = symm_mem.empty(ranks, dtype=torch.int64, device="cpu")
        placed = symm_mem.empty(2, ranks, dtype=torch.int64, device="cpu")
        for round in range(3):
            given = [[(peer + 2 * to + round) % 5 for to in range(ranks)] for peer in range(ranks)]
            splits.copy_(torch.tensor(given[rank]))
            mine.copy_(numbers((rows, 3), dtype, rank, round))
            torch.ops.symm_mem.all_to_all_vdev(mine, out, splits, placed, name)
            at = 0
            for peer in range(ranks):
                count, begin = given[peer][rank], sum(given[peer][:rank])
                assert placed[:, peer].tolist() == [count, at]
                sent = numbers((rows, 3), dtype, peer, round)[begin : begin + count]
                assert torch.equal(out[at : at + count], sent)
                at += count
            check_guards(mine, whole, 6)
            check_guards(out, guarded, 6)
    out.fill_(1)
    splits.fill_(6)
    with pytest.raises(ValueError, match="in_splits of rank 0 say 6 rows for rank .*are left"):
        torch.ops.symm_mem.all_to_all_vdev(mine, out, splits, placed, name)
    splits.fill_(0)
    splits[0] = 5
    with pytest.raises(ValueError, match="rank 0 would receive more than the 4 rows|differ"):
        torch.ops.symm_mem.all_to_all_vdev(mine, out[:4], splits, placed, name)
    assert (out == 1).all()
    with pytest.raises(ValueError, match="allowed is .* of Long"):
        torch.ops.symm_mem.all_to_all_vdev(mine, out, splits.int(), placed, name)


# ---- products


def close(one, other):
    loose = {torch.bfloat16: 3e-2, torch.float16: 4e-3}.get(one.dtype, 1e-4)
    assert one.shape == other.shape and one.dtype == other.dtype
    if one.dtype.is_floating_point:
        scale = max(float(other.abs().max()), 1.0) if other.numel() else 1.0
        torch.testing.assert_close(one, other, rtol=loose, atol=loose * scale)
    else:
        assert torch.equal(one, other)


def gather_matmuls(group):
    rank, name = group.rank(), group.group_name
    fallback = symm_mem._fused_all_gather_matmul_fallback
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.float64):
        for shape in [(6, 8), (4, 3, 8), (2, 3, 2, 8), (0, 8), (5, 0)]:
            a = numbers(shape, dtype, rank)
            for dim in range(len(shape)):
                k = shape[-1] * (group.size() if dim == len(shape) - 1 else 1)
                bs = [numbers((k, n), dtype, rank, n) for n in (5, 1)]
                for return_A in (True, False):
                    whole, products = torch.ops.symm_mem.fused_all_gather_matmul(
                        a, bs, dim, name, return_A=return_A
                    )
                    expected, expected_products = fallback(a, bs, dim, name, return_A=return_A)
                    assert (whole is None) == (not return_A)
                    if return_A:
                        assert torch.equal(whole, expected)
                    for product, right in zip(products, expected_products):
                        close(product, right)
    # Any strides, a dimension from the end, no products at all.
    a = numbers((8, 3, 6), torch.float32, rank).permute(1, 2, 0)
    b = numbers((4, 8), torch.float32, rank).t()
    close(
        torch.ops.symm_mem.fused_all_gather_matmul(a, [b], -2, name)[1][0],
        fallback(a, [b], 1, name)[1][0],
    )
    assert torch.ops.symm_mem.fused_all_gather_matmul(a, [], 0, name, return_A=False) == (None, [])
    with symm_mem._test_mode():
        whole, _ = torch.ops.symm_mem.fused_all_gather_matmul(a.contiguous(), [b], 0, name)
        assert whole.shape == (3 * group.size(), 6, 8)


def matmul_scatters(group):
    rank, size, name = group.rank(), group.size(), group.group_name
    for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int32, torch.float64):
        for shape in [(2 * size, 8), (size, 2 * size, 8), (size, 3, size, 8), (0, 8)]:
            a = numbers(shape, dtype, rank)
            b = numbers((8, 3 * size), dtype, rank, 1)
            products = [
                numbers(shape, dtype, peer) @ numbers((8, 3 * size), dtype, peer, 1)
                for peer in range(size)
            ]
            for dim in range(len(shape)):
                if products[0].shape[dim] % size != 0:
                    continue
                for op in ("sum", "avg") if dtype.is_floating_point else ("sum",):
                    result = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, op, dim, name)
                    close(result, combined(products, op).chunk(size, dim)[rank])
                    assert result.is_contiguous()
    # As the collective that PyTorch would use.
    a, b = numbers((4 * size, 8), torch.float32, rank), numbers((8, 6), torch.float32, rank, 1)
    close(
        torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, name),
        symm_mem._fused_matmul_reduce_scatter_fallback(a, b, "sum", 0, name),
    )
    # What is summed has the same bits on whoever owns it: all parts of one row are equal here.
    same = torch.full((size, 16), 0.1).bfloat16() * (rank + 1)
    weight = numbers((16, 6), torch.bfloat16, 9)
    row = torch.ops.symm_mem.fused_matmul_reduce_scatter(same, weight, "sum", 0, name)
    rows = [torch.empty_like(row) for _ in range(size)]
    dist.all_gather(rows, row, group)
    assert all(torch.equal(row, other) for other in rows)


def plain_collectives(group):
    rank, size, name = group.rank(), group.size(), group.group_name
    for dtype in TYPES:
        shape = (2 * size, 3)
        parts = [numbers(shape, dtype, peer) for peer in range(size)]
        whole = torch.ops.symm_mem._low_contention_all_gather(parts[rank], name)
        assert torch.equal(torch.ops._c10d_functional.wait_tensor(whole), torch.cat(parts))
        for op in ("sum", "avg") if "avg" in ops_of(dtype) else ("sum",):
            part = torch.ops.symm_mem._low_contention_reduce_scatter(parts[rank], op, name)
            assert torch.equal(part, combined(parts, op).chunk(size)[rank])
        strided = torch.ops.symm_mem._low_contention_all_gather(parts[rank].t(), name)
        assert torch.equal(strided, torch.cat([part.t() for part in parts]))


def wrong_products(group):
    size, name = group.size(), group.group_name
    a, b = torch.ones(2 * size, 4), torch.ones(4, 3)
    ops = torch.ops.symm_mem
    who = f"rank {size - 1} refused a call: "
    with refused(group, who + r"Bs\[0\] has the shape", r"Bs\[0\] has the shape \[3, 3\]"):
        ops.fused_all_gather_matmul(a, [b[:3] if is_last(group) else b], 0, name)
    with refused(group, who, "gather_dim is 2, allowed are -2 to 1"):
        ops.fused_all_gather_matmul(a, [b], 2 if is_last(group) else 0, name)
    with refused(group, who, "B has the shape .* of Double, allowed is"):
        ops.fused_matmul_reduce_scatter(a, b.double() if is_last(group) else b, "sum", 0, name)
    with refused(group, who, 'reduce_op is "max", allowed are sum and avg'):
        ops.fused_matmul_reduce_scatter(a, b, "max" if is_last(group) else "sum", 0, name)
    with refused(group, who, "avg, which is of floating-point numbers"):
        ops._low_contention_reduce_scatter(a.int() if is_last(group) else a, "avg", name)
    if size > 1:
        with refused(group, who, f"elements along 0, allowed are multiples of {size}"):
            ops.fused_matmul_reduce_scatter(a[1:] if is_last(group) else a, b, "sum", 0, name)
        with pytest.raises(ValueError, match="the ranks' calls differ: .*Float.*rank"):
            ops.fused_all_gather_matmul(a[1:] if is_last(group) else a, [b], 0, name)
        with pytest.raises(ValueError, match="the ranks' calls differ"):
            if is_last(group):
                ops.fused_matmul_reduce_scatter(a, b, "sum", 0, name)
            else:
                ops.fused_all_gather_matmul(a, [b], 0, name)
        # Larger than anything before, on one rank only.
        with pytest.raises(ValueError, match="the ranks' calls differ"):
            ops._low_contention_all_gather(a if is_last(group) else torch.ones(1 << 22), name)
    _, (product,) = ops.fused_all_gather_matmul(a, [b], 0, name)
    assert (product == 4).all() and product.shape == (2 * size * size, 3)


def failures_inside(group):
    """What throws on one rank ends the call on all that need it, and the next call is right."""
    size, name = group.size(), group.group_name
    a, b = torch.ones(2 * size, 4), torch.ones(4, 3)
    if size > 1:
        too_wide = b[:, :1].expand(4, 1 << 46)
        with pytest.raises(
            RuntimeError if is_last(group) else Error,
            match="can't allocate" if is_last(group) else f"rank {size - 1} failed in",
        ):
            factor = too_wide if is_last(group) else b
            torch.ops.symm_mem.fused_all_gather_matmul(a, [factor], 0, name)
    result = torch.ops.symm_mem.fused_matmul_reduce_scatter(a, b, "sum", 0, name)
    assert (result == 4 * size).all()


def too_many_threads(group):
    """Two threads of rank 0 in one group's operations: one has an exception, one goes on."""
    rank, size, name = group.rank(), group.size(), group.group_name
    handle = symm_mem.rendezvous(symm_mem.empty(1, device="cpu"), group)
    ends = queue.SimpleQueue()

    def work():
        try:
            ends.put(torch.ops.symm_mem._low_contention_all_gather(torch.ones(1), name))
        except RuntimeError as error:
            ends.put(error)

    if rank > 0:
        handle.wait_signal(0)
        work()
    elif size > 1:
        threads = [threading.Thread(target=work, daemon=True) for _ in range(2)]
        for thread in threads:
            thread.start()
        # The others have not come yet, so that this is not the end of the right one.
        assert "another thread is in an operation" in str(ends.get(timeout=SOON_S))
        for peer in range(1, size):
            handle.put_signal(peer)
    if size > 1:
        assert torch.equal(ends.get(timeout=SOON_S), torch.ones(size))


def one_late(group):
    """Three calls back to back of each operation, with each rank late in turn."""
    rank, size, name = group.rank(), group.size(), group.group_name
    symm, _ = symmetric((size, 40), torch.float32, group)
    b = numbers((8, 5), torch.float32, 3)
    for late in range(size):
        for call in range(3):
            seeds = [(peer, late, call) for peer in range(size)]
            ones = [numbers((4 * size, 8), torch.float32, *seed) for seed in seeds]
            twos = [numbers((size, 40), torch.float32, *seed) for seed in seeds]
            if rank == late and call == 0:
                time.sleep(0.05)  # a straggler: nothing waits for this to be over
            whole, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(ones[rank], [b], 0, name)
            part = torch.ops.symm_mem.fused_matmul_reduce_scatter(ones[rank], b, "sum", 0, name)
            symm.copy_(twos[rank])
            reduced = torch.ops.symm_mem.one_shot_all_reduce(symm, "sum", name)
            torch.ops.symm_mem.two_shot_all_reduce_(symm, "sum", name)
            assert torch.equal(whole, torch.cat(ones))
            close(product, torch.cat(ones) @ b)
            close(part, combined([one @ b for one in ones], "sum").chunk(size)[rank])
            assert torch.equal(reduced, combined(twos, "sum")) and torch.equal(symm, reduced)


def threads(group):
    """Two threads, each with a group of its own, in operations at the same time."""
    ranks = group.size()
    groups = [dist.new_group(list(range(ranks))) for _ in range(2)]
    ends = [None, None]

    def work(index):
        name = groups[index].group_name
        b = numbers((6, 4), torch.float32, index)
        for call in range(40):
            parts = [numbers((3, 6), torch.float32, peer, index, call) for peer in range(ranks)]
            _, (product,) = torch.ops.symm_mem.fused_all_gather_matmul(
                parts[group.rank()], [b], 0, name
            )
            close(product, torch.cat(parts) @ b)
        ends[index] = "right"

    running = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(SOON_S)
    assert ends == ["right", "right"]


def gradients(group):
    """Against one process that has all ranks' tensors."""
    rank, size, name = group.rank(), group.size(), group.group_name
    shape = (2 * size, 3, 4)

    def leaves(*seed, shape=shape):
        return [numbers(shape, torch.float64, peer, *seed).requires_grad_() for peer in range(size)]

    for dim in range(3):
        last = dim == 2
        parts = leaves(dim)
        factors = [leaves(dim, n, shape=(4 * size if last else 4, n)) for n in (size, 2 * size)]
        mine = [parts[rank].detach().requires_grad_()]
        mine += [factor[rank].detach().requires_grad_() for factor in factors]
        whole, products = torch.ops.symm_mem.fused_all_gather_matmul(mine[0], mine[1:], dim, name)
        loss = sum((product**2).sum() for product in products)
        (loss + whole.sum() * (rank + 1)).backward()
        everything = torch.cat(parts, dim)
        for peer in range(size):
            losses = [((everything @ factor[peer]) ** 2).sum() for factor in factors]
            (sum(losses) + everything.sum() * (peer + 1)).backward(retain_graph=True)
        close(mine[0].grad, parts[rank].grad)
        for got, factor in zip(mine[1:], factors):
            close(got.grad, factor[rank].grad)
        only = parts[rank].detach().requires_grad_()
        gathered, _ = torch.ops.symm_mem.fused_all_gather_matmul(only, [], dim, name)
        gathered.sum().backward()
        assert (only.grad == size).all()

        factor = factors[1] if not last else leaves(9, shape=(4, 2 * size))
        for leaf in parts + factor:
            leaf.grad = None
        if (2 * size if last else shape[dim]) % size != 0:
            continue
        one, two = (tensor.detach().requires_grad_() for tensor in (parts[rank], factor[rank]))
        result = torch.ops.symm_mem.fused_matmul_reduce_scatter(one, two, "avg", dim, name)
        (result**2).sum().backward()
        average = sum(part @ b for part, b in zip(parts, factor)) / size
        (average**2).sum().backward()
        close(one.grad, parts[rank].grad)
        close(two.grad, factor[rank].grad)
        # Of the first only.
        one.grad = None
        torch.ops.symm_mem.fused_matmul_reduce_scatter(
            one, two.detach(), "avg", dim, name
        ).square().sum().backward()
        close(one.grad, parts[rank].grad)


def time_outs(group):
    """A group whose rank 0 is alone in an operation says so in time, and stays out of step."""
    if group.size() < 2:
        return
    few = dist.new_group([0, 1], timeout=timedelta(seconds=2))
    if group.rank() < 2:
        tensor, _ = symmetric((4,), torch.float32, few)
        assert torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", few.group_name)[0] == 2 * GUARD
        if group.rank() == 0:
            with pytest.raises(Timeout, match='rank 1 did not come to "one_shot_all_reduce'):
                torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", few.group_name)
            with pytest.raises(RuntimeError, match="has failed, so that its ranks are out of step"):
                torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", few.group_name)
    dist.barrier(group)


MEMORY = [handles, sizes_that_differ, lasting, pads, signals, words, workspaces]
OPERATIONS = [all_reduces, wrong_reductions, reduce_scatters, all_to_alls, gather_matmuls]
OPERATIONS += [
    matmul_scatters,
    plain_collectives,
    wrong_products,
    failures_inside,
    one_late,
    threads,
]
OPERATIONS += [too_many_threads, gradients]


def everything(rank, ranks):
    group = start()
    for check in MEMORY + OPERATIONS:
        check(group)
    time_outs(group)
    # Groups of some, that overlap, with members in another order, and of one.
    alone = [dist.new_group([peer]) for peer in range(ranks)][rank]
    outer = dist.new_group([ranks - 1, 0], sort_ranks=False)
    for check in (handles, signals, all_reduces, one_late):
        check(alone)
        if rank in (0, ranks - 1):
            check(outer)
    # A process group that has the name of one that is gone, of another backend.
    dist.destroy_process_group()
    again = f"tcp://127.0.0.1:{os.environ['SECOND_PORT']}"
    dist.init_process_group("memspan", init_method=again, rank=rank, world_size=ranks)
    for check in (handles, workspaces, one_late):
        check(dist.group.WORLD)
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", [2, 3])
def test_memory_and_operations(ranks):
    jobs.run(everything, ranks, SECOND_PORT=str(jobs.free_port()))


def death(rank, ranks):
    group = start()
    tensor, _ = symmetric((4,), torch.float32, group)
    handle = symm_mem.rendezvous(tensor, group)
    living = dist.new_group([0, 1])
    if rank < 2:
        symm_mem.rendezvous(tensor, living)
    torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", group.group_name)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    if rank == 0:
        handle.wait_signal(1, 3)  # rank 1 sees the death before it sends this one
    with pytest.raises(PeerFailed, match="no signal of rank 2 came on channel 0: .*died"):
        handle.wait_signal(2)
    if rank == 1:
        handle.put_signal(0, 3)
    with pytest.raises(PeerFailed, match='rank 2 did not come to "two_shot_all_reduce_'):
        torch.ops.symm_mem.two_shot_all_reduce_(tensor, "sum", group.group_name)
    with pytest.raises(RuntimeError, match="make a new process group"):
        torch.ops.symm_mem.fused_all_gather_matmul(torch.ones(2, 2), [], 0, group.group_name)
    assert time.monotonic() - begin < SOON_S
    # The others go on, and the memory of the dead is still there.
    assert handle.get_buffer(2, (4,), torch.float32)[0] == GUARD
    tensor.fill_(rank)
    reduced = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", living.group_name)
    assert reduced.tolist() == [1] * 4
    os._exit(0)  # gloo would wait for the dead


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
        env={**os.environ, "MEMSPAN_TORCH_BUILD": "0"},
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "symmetric memory of PyTorch: MEMSPAN_TORCH_BUILD is 0",
        "None",
    ]
