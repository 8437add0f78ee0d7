# SPDX-License-Identifier: Apache-2.0
"""torch.ops.symm_mem on the CPU, against what one process computes, or PyTorch's own fallbacks."""

import contextlib
import math
import os
import queue
import signal
import threading
import time
from datetime import timedelta

import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
import torch.distributed._symmetric_memory as symm_mem  # noqa: E402
from memspan.errors import Error, PeerFailed, Timeout  # noqa: E402
from memspan.torch import native  # noqa: E402
from symmetric import (  # noqa: E402
    GUARD,
    SOON_S,
    TYPES,
    check_guards,
    numbers,
    one_host,
    start,
    symmetric,
)

HALVES = (torch.bfloat16, torch.float16)


@pytest.fixture(scope="module", autouse=True)
def extensions():
    """Compiled ahead of the jobs, whose time is short."""
    for name in ("symmetric_memory", "process_group"):
        native.build(name)


# ---- reductions and moves


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
    if op == "avg":  # complex numbers by parts: PyTorch's division rounds more than once
        numbers = torch.view_as_real(result) if dtype.is_complex else result
        numbers /= len(parts)
    return result.to(dtype)


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


CHECKS = [all_reduces, wrong_reductions, reduce_scatters, all_to_alls, gather_matmuls]
CHECKS += [matmul_scatters, plain_collectives, wrong_products, failures_inside, one_late, threads]
CHECKS += [too_many_threads, gradients, time_outs]


def everything(rank, ranks):
    group = start()
    for check in CHECKS:
        check(group)
    # Groups of some, that overlap, with members in another order, and of one.
    alone = [dist.new_group([peer]) for peer in range(ranks)][rank]
    outer = dist.new_group([ranks - 1, 0], sort_ranks=False)
    for check in (all_reduces, one_late):
        check(alone)
        if rank in (0, ranks - 1):
            check(outer)
    # A process group that has the name of one that is gone, of another backend.
    dist.destroy_process_group()
    again = f"tcp://{jobs.hosts.ADDRESS}:{os.environ['SECOND_PORT']}"
    dist.init_process_group("memspan", init_method=again, rank=rank, world_size=ranks)
    one_late(dist.group.WORLD)
    dist.destroy_process_group()


@one_host
@pytest.mark.parametrize("ranks", [2, 3])
def test_operations(ranks):
    jobs.run(everything, ranks, SECOND_PORT=str(jobs.free_port()))


def death(rank, ranks):
    group = start()
    tensor, _ = symmetric((4,), torch.float32, group)
    living = dist.new_group([0, 1])
    if rank < 2:
        symm_mem.rendezvous(tensor, living)
    torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", group.group_name)
    if rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(PeerFailed, match='rank 2 did not come to "two_shot_all_reduce_'):
        torch.ops.symm_mem.two_shot_all_reduce_(tensor, "sum", group.group_name)
    with pytest.raises(RuntimeError, match="make a new process group"):
        torch.ops.symm_mem.fused_all_gather_matmul(torch.ones(2, 2), [], 0, group.group_name)
    assert time.monotonic() - begin < SOON_S
    # The others go on.
    tensor.fill_(rank)
    reduced = torch.ops.symm_mem.one_shot_all_reduce(tensor, "sum", living.group_name)
    assert reduced.tolist() == [1] * 4
    os._exit(0)  # gloo would wait for the dead


@one_host
def test_the_death_of_a_rank():
    ends = jobs.Job(death, 3).ends()
    assert ends[2][0] == -signal.SIGKILL
    for code, out, err in ends[:2]:
        assert code == 0, f"{out}\n{err}"
