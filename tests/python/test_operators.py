# SPDX-License-Identifier: Apache-2.0
"""torch.ops.memspan: collectives as operators."""

import pathlib
import runpy
import sys

import jobs
import pytest
from jobs import hosts

torch = pytest.importorskip("torch", reason="needs=torch")

import torch.distributed as dist  # noqa: E402
from memspan.torch import native  # noqa: E402

TYPES = [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int32]
SMALL_TYPES = [torch.int8, torch.float8_e4m3fn, torch.float8_e5m2]
SIZES = [1, 7, 16, 100, 1000, 5000, 300_000]


@pytest.fixture(scope="module", autouse=True)
def extension():
    """Compiled ahead of the jobs, whose time is short."""
    native.build("process_group")


def name():
    return dist.group.WORLD.group_name


def values(rank, count, dtype=torch.float32):
    drawn = torch.randn(count, generator=torch.Generator().manual_seed(rank)) * 100
    return drawn.to(dtype)


def sums(rank, ranks):
    """The bits are those of torch.distributed's call."""
    for dtype in TYPES:
        for count in SIZES:
            expected = values(rank, count, dtype)
            dist.all_reduce(expected)
            mine = values(rank, count, dtype)
            torch.ops.memspan.all_reduce_(mine, name())
            assert torch.equal(mine, expected), (dtype, count)
            mine = values(rank, count, dtype)
            made = torch.ops.memspan.all_reduce(mine, name())
            assert torch.equal(made, expected) and torch.equal(mine, values(rank, count, dtype))
    for op, reduce_op in (("max", dist.ReduceOp.MAX), ("avg", dist.ReduceOp.AVG)):
        expected = values(rank, 1000)
        dist.all_reduce(expected, reduce_op)
        assert torch.equal(torch.ops.memspan.all_reduce(values(rank, 1000), name(), op), expected)


def every_pair(rank, ranks, dtype):
    """65536 elements of each rank: the first two have every pair of bytes, others any."""
    if ranks > 1 and rank < 2:
        every = torch.arange(256).to(torch.uint8)
        drawn = every.repeat(256) if rank == 0 else every.repeat_interleave(256)
    else:
        drawn = torch.randint(0, 256, (65536,), generator=torch.Generator().manual_seed(rank)).to(torch.uint8)
    return drawn.view(dtype)


def are_same(made, expected):
    """The bits, but for which NaN it is."""
    if not made.dtype.is_floating_point:
        return torch.equal(made, expected)
    is_nan = expected.float().isnan()
    same_bits = made.view(torch.uint8) == expected.view(torch.uint8)
    return torch.equal(made.float().isnan(), is_nan) and bool((same_bits | is_nan).all())


def small_types(rank, ranks):
    """int8 wraps; float8 is computed in float32 and rounded once, as PyTorch's conversion rounds."""
    combine = {
        "sum": torch.add,
        "product": torch.mul,
        "min": lambda a, b: torch.where(b < a, b, a),  # of zeros of both signs the first
        "max": lambda a, b: torch.where(a < b, b, a),
    }
    reduce_ops = {
        "sum": dist.ReduceOp.SUM,
        "product": dist.ReduceOp.PRODUCT,
        "min": dist.ReduceOp.MIN,
        "max": dist.ReduceOp.MAX,
        "avg": dist.ReduceOp.AVG,
    }
    for dtype in SMALL_TYPES:
        all_of = [every_pair(r, ranks, dtype) for r in range(ranks)]
        mine = all_of[rank]
        for op, reduce_op in reduce_ops.items():
            if op == "avg" and dtype == torch.int8:
                continue
            wide = [values if dtype == torch.int8 else values.float() for values in all_of]
            if op in ("min", "max"):  # which are of no NaN
                wide = [values.nan_to_num(nan=1) if values.is_floating_point() else values for values in wide]
            given = wide[rank].to(dtype)
            expected = wide[0]
            for values in wide[1:]:
                expected = combine["sum" if op == "avg" else op](expected, values)
            expected = (expected / ranks if op == "avg" else expected).to(dtype)
            assert are_same(torch.ops.memspan.all_reduce(given, name(), op), expected), (dtype, op)
            result = given.clone()
            dist.all_reduce(result, reduce_op)
            assert are_same(result, expected), (dtype, op)
            result = given.clone()
            dist.reduce(result, 0, reduce_op)
            assert are_same(result, expected if rank == 0 else given), (dtype, op)
            if op == "sum":
                total = expected
        count = mine.numel() // ranks
        part = torch.ops.memspan.reduce_scatter(mine[: count * ranks], name())
        assert are_same(part, total[rank * count : (rank + 1) * count]), dtype
        part = torch.empty(count, dtype=dtype)
        dist.reduce_scatter_single(part, mine[: count * ranks])
        assert are_same(part, total[rank * count : (rank + 1) * count]), dtype
        for size in (1, 3, 31, 1001):  # with the call itself, and whole
            assert are_same(torch.ops.memspan.all_reduce(mine[:size].clone(), name()), total[:size])


def gathers(rank, ranks):
    for dtype in TYPES:
        for rows in (1, 3, 50_000):
            mine = values(rank, 4 * rows, dtype).view(rows, 4)
            expected = torch.cat([values(r, 4 * rows, dtype).view(rows, 4) for r in range(ranks)])
            assert torch.equal(torch.ops.memspan.all_gather(mine, name()), expected)
            there = torch.empty_like(expected)
            torch.ops.memspan.all_gather_out(there, mine, name())
            assert torch.equal(there, expected)


def scatters(rank, ranks):
    for dtype in TYPES:
        for rows in (1, 3, 50_000):
            mine = values(rank, 2 * rows * ranks, dtype).view(rows * ranks, 2)
            expected = mine.clone()
            dist.all_reduce(expected)
            expected = expected[rank * rows : (rank + 1) * rows]
            assert torch.equal(torch.ops.memspan.reduce_scatter(mine, name()), expected)
            there = torch.empty_like(expected)
            torch.ops.memspan.reduce_scatter_out(there, mine, name())
            assert torch.equal(there, expected)


def tensors_with_gaps(rank, ranks):
    wide = values(rank, 600).view(20, 30)
    expected = wide.clone()
    dist.all_reduce(expected)
    mine = wide.clone()
    torch.ops.memspan.all_reduce_(mine[:, ::2], name())
    assert torch.equal(mine[:, ::2], expected[:, ::2])
    assert torch.equal(mine[:, 1::2], wide[:, 1::2])
    assert torch.equal(torch.ops.memspan.all_reduce(wide.t(), name()), expected.t())
    assert torch.ops.memspan.all_reduce(torch.empty(0), name()).numel() == 0


def among_other_collectives(rank, ranks):
    """In the order of the calls, also behind what is not over yet."""
    for _ in range(20):
        first = torch.full((1000,), float(rank))
        work = dist.all_reduce(first, async_op=True)
        second = torch.ops.memspan.all_reduce(torch.ones(3), name())
        third = torch.tensor([float(rank)])
        dist.broadcast(third, ranks - 1)
        work.wait()
        assert first[0].item() == sum(range(ranks)) and second.tolist() == [ranks] * 3
        assert third.item() == ranks - 1


def loops(rank, ranks):
    """The same memory again and again, as a replayed graph has it."""
    tensor = torch.zeros(16)
    for step in range(2000):
        tensor.fill_(rank + step)
        torch.ops.memspan.all_reduce_(tensor, name())
        assert tensor[15].item() == sum(range(ranks)) + ranks * step


def compiled(rank, ranks):
    def layer(x, weight):
        y = x @ weight
        torch.ops.memspan.all_reduce_(y, name_of_group)
        gathered = torch.ops.memspan.all_gather(torch.relu(y), name_of_group)
        return torch.ops.memspan.reduce_scatter(gathered, name_of_group) + y

    name_of_group = name()
    x, weight = values(rank, 64).view(8, 8), values(7, 64).view(8, 8)
    expected = layer(x, weight)
    traced = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        assert torch.allclose(traced(x, weight), expected)


def mistakes(rank, ranks):
    with pytest.raises(ValueError, match="reduce_op is mean, allowed are sum"):
        torch.ops.memspan.all_reduce_(torch.ones(3), name(), "mean")
    with pytest.raises(RuntimeError, match="nobody"):
        torch.ops.memspan.all_reduce_(torch.ones(3), "nobody")
    with pytest.raises(ValueError, match="a tensor without dimensions has no parts"):
        torch.ops.memspan.reduce_scatter(torch.tensor(1.0), name())
    with pytest.raises(ValueError, match="needed are"):
        torch.ops.memspan.all_gather_out(torch.ones(1), torch.ones(3), name())
    with pytest.raises(TypeError, match="the output is of"):
        torch.ops.memspan.all_gather_out(torch.ones(3 * ranks, dtype=torch.int), torch.ones(3), name())
    if ranks > 1:
        with pytest.raises(ValueError, match=f"no multiple of the group's size {ranks}"):
            torch.ops.memspan.reduce_scatter(torch.ones(ranks + 1), name())
        with pytest.raises(ValueError, match="size in bytes"):
            torch.ops.memspan.all_reduce_(torch.ones(3 + rank), name())
    gloo = dist.new_group(backend="gloo")
    with pytest.raises(ValueError, match="has the backend gloo for the CPU"):
        torch.ops.memspan.all_reduce_(torch.ones(3), gloo.group_name)
    total = torch.ops.memspan.all_reduce(torch.ones(3), name())  # the group goes on
    assert total.tolist() == [ranks] * 3


def groups_come_and_go(rank, ranks):
    for _ in range(3):
        group = dist.new_group(list(range(ranks)))
        mine = torch.ones(4)
        torch.ops.memspan.all_reduce_(mine, group.group_name)
        assert mine[0].item() == ranks
        gone = group.group_name
        dist.destroy_process_group(group)
        with pytest.raises(RuntimeError):
            torch.ops.memspan.all_reduce_(mine, gone)


CHECKS = [
    sums,
    small_types,
    gathers,
    scatters,
    tensors_with_gaps,
    among_other_collectives,
    loops,
    compiled,
    mistakes,
    groups_come_and_go,
]


def all_checks(rank, ranks):
    dist.init_process_group("memspan")
    for check in CHECKS:
        check(rank, ranks)
        print(check.__name__)
    dist.destroy_process_group()


@pytest.mark.parametrize("ranks", hosts.ranks_or(1, 2, 3))
def test_operators(ranks):
    for out in jobs.run(all_checks, ranks):
        assert out.split() == [check.__name__ for check in CHECKS]


def example(rank, ranks):
    program = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "engine_collectives.py"
    sys.argv = [program.name, "1000"]
    runpy.run_path(str(program), run_name="__main__")


@pytest.mark.parametrize("ranks", hosts.ranks_or(1, 2, 3))
def test_example_of_engines(ranks):
    first, *others = jobs.run(example, ranks)
    assert first.splitlines()[-1] == f"engine_collectives: {ranks} rank{'' if ranks == 1 else 's'}, 1000 elements, PASS"
    assert others == [""] * (ranks - 1)
