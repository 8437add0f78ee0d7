# SPDX-License-Identifier: Apache-2.0
"""The operations of ``torch.ops.symm_mem`` on the CPU that multiply, or that take any tensor.

A rank's part of what moves lies in its slot of the group's workspace, which all ranks have mapped:
the others read it there as soon as it is announced, so that nothing has to be gathered before it
is multiplied. csrc/workspace.h has the rules.
"""

import contextlib

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from memspan.errors import Error
from memspan.torch import native

extension = native.load("symmetric_memory")
if extension is None:
    raise Error(f"symmetric memory of PyTorch: {native.why_not('symmetric_memory')}")

_LINE = 64  # slots have parts at multiples of it
_library = None


@contextlib.contextmanager
def _checking(workspace):
    """Where arguments are looked at: what is wrong is said to the other ranks, too."""
    try:
        yield
    except ValueError as error:
        workspace.refuse(str(error))
        raise


@contextlib.contextmanager
def _call(workspace, what, size):
    """A call in which this rank's slot has room for so many bytes."""
    workspace.begin(what, size)
    try:
        yield
    except BaseException:
        workspace.abandon()
        raise


def _bytes(tensor):
    return tensor.numel() * tensor.element_size()


def _dimension(number, tensor, name):
    if not -tensor.dim() <= number < tensor.dim():
        raise ValueError(f"{name} is {number}, allowed are {-tensor.dim()} to {tensor.dim() - 1}")
    return number % tensor.dim()


def _check_factor(b, rows, dtype, name):
    if b.dim() != 2 or b.shape[0] != rows or b.dtype != dtype:
        raise ValueError(
            f"{name} has the shape {tuple(b.shape)} of {b.dtype}, allowed is ({rows}, any) of "
            f"{dtype}"
        )


def _check_reduction(reduce_op, dtype):
    if reduce_op not in ("sum", "avg"):
        raise ValueError(f'reduce_op is "{reduce_op}", allowed are sum and avg')
    if reduce_op == "avg" and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"reduce_op is avg, which is of floating-point numbers, not of {dtype}")


def _pass_round(workspace, what, part, take):
    """take(rank, that rank's part) for every rank, this one first and the others as they come."""
    rank = workspace.rank
    with _call(workspace, f"{what} {part.dtype} {tuple(part.shape)}", _bytes(part)):
        mine = workspace.slot(rank, part.shape, part.dtype, 0)
        mine.copy_(part)
        workspace.publish_all()
        take(rank, mine)
        for _ in range(workspace.size - 1):
            peer = workspace.next()
            take(peer, workspace.slot(peer, part.shape, part.dtype, 0))
            workspace.release(peer)
        workspace.end()


# ---- gather and multiply


def all_gather_matmul(A, Bs, gather_dim, group_name, *, return_A=True):
    """All ranks' ``A`` one after the other along ``gather_dim``, and that multiplied by each of
    ``Bs``: (it, or None; the products). A: of two dimensions or more, the last is multiplied. The
    ranks' ``A`` have one shape and type, their ``Bs`` may differ."""
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem._fused_all_gather_matmul_fallback(
            A, Bs, gather_dim, group_name, return_A=return_A
        )
    workspace = extension.workspace(group_name)
    with _checking(workspace):
        if A.dim() < 2:
            raise ValueError(f"A has {A.dim()} dimensions, allowed are 2 and more")
        dimension = _dimension(gather_dim, A, "gather_dim")
        is_last = dimension == A.dim() - 1
        for index, b in enumerate(Bs):
            rows = A.shape[-1] * (workspace.size if is_last else 1)
            _check_factor(b, rows, A.dtype, f"Bs[{index}]")
    multiply = _multiply_gathered if is_last else _multiply_rows
    return multiply(workspace, A, Bs, dimension, return_A)


def _multiply_rows(workspace, A, Bs, dimension, return_A):
    """Each rank's rows are multiplied where they lie."""
    part = A.movedim(dimension, 0)
    leading, k = part.shape[:-1], part.shape[-1]
    count = leading.numel()
    products = [A.new_empty((workspace.size * count, b.shape[1])) for b in Bs]
    whole = A.new_empty((workspace.size * count, k)) if return_A else None

    def take(rank, part):
        rows = slice(rank * count, (rank + 1) * count)
        part = part.view(count, k)
        for b, product in zip(Bs, products):
            torch.mm(part, b, out=product[rows])
        if return_A:
            whole[rows].copy_(part)

    def as_A(rows):
        shape = (workspace.size * leading[0], *leading[1:], rows.shape[1])
        return rows.view(shape).movedim(0, dimension)

    _pass_round(workspace, f"fused_all_gather_matmul along {dimension},", part, take)
    return as_A(whole) if return_A else None, [as_A(product) for product in products]


def _multiply_gathered(workspace, A, Bs, dimension, return_A):
    """Each product needs all ranks' columns, and is rounded once."""
    k = A.shape[-1]
    whole = A.new_empty((*A.shape[:-1], workspace.size * k))

    def take(rank, part):
        whole.narrow(-1, rank * k, k).copy_(part)

    _pass_round(workspace, f"fused_all_gather_matmul along {dimension},", A, take)
    products = [torch.matmul(whole, b) for b in Bs]
    return whole if return_A else None, products


# ---- multiply and reduce


def matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name):
    """This rank's part, along ``scatter_dim``, of the sum or average of all ranks' ``A @ B``. A: of
    two dimensions or more; the products of the ranks have one shape and type."""
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem._fused_matmul_reduce_scatter_fallback(
            A, B, reduce_op, scatter_dim, group_name
        )
    workspace = extension.workspace(group_name)
    size = workspace.size
    with _checking(workspace):
        if A.dim() < 2:
            raise ValueError(f"A has {A.dim()} dimensions, allowed are 2 and more")
        _check_factor(B, A.shape[-1], A.dtype, "B")
        _check_reduction(reduce_op, A.dtype)
        dimension = _dimension(scatter_dim, A, "scatter_dim")
        is_last = dimension == A.dim() - 1
        extent = B.shape[1] if is_last else A.shape[dimension]
        if extent % size != 0:
            raise ValueError(
                f"the product has {extent} elements along {dimension}, allowed are multiples of "
                f"{size}"
            )
    if is_last:
        rows = A.flatten(0, -2)
        factors = [(rows, columns) for columns in B.chunk(size, dim=1)]
        shape = (*A.shape[:-1], extent // size)
    else:
        moved = A.movedim(dimension, 0)
        factors = [(part.flatten(0, -2), B) for part in moved.chunk(size)]
        shape = (extent // size, *moved.shape[1:-1], B.shape[1])
    what = f"fused_matmul_reduce_scatter {reduce_op} along {dimension}, {A.dtype} {shape}"
    result = A.new_empty(shape)
    _reduce_products(workspace, what, factors, reduce_op, result)
    return result if is_last else result.movedim(0, dimension).contiguous()


def _reduce_products(workspace, what, factors, reduce_op, result):
    """factors[r]: what rank r's part is the product of. One's own is multiplied last."""
    size, rank = workspace.size, workspace.rank
    step = -(-_bytes(result) // _LINE) * _LINE
    shape = (factors[rank][0].shape[0], factors[rank][1].shape[1])
    with _call(workspace, what, size * step):

        def part(of, to):
            return workspace.slot(of, shape, result.dtype, to * step)

        for ahead in range(1, size):
            peer = (rank + ahead) % size
            torch.mm(*factors[peer], out=part(rank, peer))
            workspace.publish(peer)
        torch.mm(*factors[rank], out=part(rank, rank))
        workspace.await_all()
        parts = [part(of, rank) for of in range(size)]
        extension.combine([result.view(shape)], parts, reduce_op)
        workspace.release_all()
        workspace.end()


# ---- gradients


class _AllGatherMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, gather_dim, group_name, return_A, *Bs):
        ctx.set_materialize_grads(False)
        wants_whole = any(ctx.needs_input_grad[4:])
        with torch._C._AutoDispatchBelowAutograd():
            whole, products = torch.ops.symm_mem.fused_all_gather_matmul(
                A, Bs, gather_dim, group_name, return_A=return_A or wants_whole
            )
        ctx.dimension, ctx.group_name = gather_dim % A.dim(), group_name
        ctx.save_for_backward(whole if wants_whole else None, *Bs)
        ctx.shapes = [product.shape for product in products]
        return whole if return_A else None, *products

    @staticmethod
    def backward(ctx, grad_whole, *grads):
        whole, *Bs = ctx.saved_tensors
        grads = [
            b.new_zeros(shape) if grad is None else grad
            for b, shape, grad in zip(Bs, ctx.shapes, grads)
        ]
        grad_A, grad_Bs = None, [None] * len(Bs)
        if ctx.needs_input_grad[0]:
            # One operation for all: the products side by side.
            grad_A = torch.ops.symm_mem.fused_matmul_reduce_scatter(
                torch.cat(grads, -1), torch.cat(Bs, 1).mH, "sum", ctx.dimension, ctx.group_name
            )
            if grad_whole is not None:
                grad_A = grad_A + _reduce_scatter_along(grad_whole, ctx.dimension, ctx.group_name)
        if whole is not None:
            rows = whole.flatten(0, -2).mH
            grad_Bs = [
                rows @ grad.flatten(0, -2) if needs else None
                for grad, needs in zip(grads, ctx.needs_input_grad[4:])
            ]
        return grad_A, None, None, None, *grad_Bs


class _MatmulReduceScatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, B, reduce_op, scatter_dim, group_name):
        with torch._C._AutoDispatchBelowAutograd():
            result = torch.ops.symm_mem.fused_matmul_reduce_scatter(
                A, B, reduce_op, scatter_dim, group_name
            )
        ctx.dimension, ctx.group_name = scatter_dim % A.dim(), group_name
        ctx.divisor = A.shape[ctx.dimension] // result.shape[ctx.dimension]
        if ctx.dimension == A.dim() - 1:
            ctx.divisor = B.shape[1] // result.shape[-1]
        ctx.is_average = reduce_op == "avg"
        ctx.save_for_backward(A if ctx.needs_input_grad[1] else None, B)
        return result

    @staticmethod
    def backward(ctx, grad):
        A, B = ctx.saved_tensors
        if ctx.is_average:
            grad = grad / ctx.divisor
        whole, products = torch.ops.symm_mem.fused_all_gather_matmul(
            grad,
            [B.mH] if ctx.needs_input_grad[0] else [],
            ctx.dimension,
            ctx.group_name,
            return_A=ctx.needs_input_grad[1],
        )
        grad_B = None if A is None else A.flatten(0, -2).mH @ whole.flatten(0, -2)
        return products[0] if products else None, grad_B, None, None, None


def _reduce_scatter_along(tensor, dimension, group_name):
    moved = tensor.movedim(dimension, 0)
    part = torch.ops.symm_mem._low_contention_reduce_scatter(moved, "sum", group_name)
    return part.movedim(0, dimension)


def _wants_gradients(*tensors):
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


def _all_gather_matmul_with_gradients(A, Bs, gather_dim, group_name, *, return_A=True):
    if _wants_gradients(A, *Bs):
        whole, *products = _AllGatherMatmul.apply(A, gather_dim, group_name, return_A, *Bs)
        return whole, products
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.symm_mem.fused_all_gather_matmul(
            A, Bs, gather_dim, group_name, return_A=return_A
        )


def _matmul_reduce_scatter_with_gradients(A, B, reduce_op, scatter_dim, group_name):
    if _wants_gradients(A, B):
        return _MatmulReduceScatter.apply(A, B, reduce_op, scatter_dim, group_name)
    with torch._C._AutoDispatchBelowAutograd():
        return torch.ops.symm_mem.fused_matmul_reduce_scatter(
            A, B, reduce_op, scatter_dim, group_name
        )


# ---- without products


def all_gather(tensor, group_name):
    """All ranks' tensors one after the other along the first dimension."""
    workspace = extension.workspace(group_name)
    with _checking(workspace):
        if tensor.dim() == 0:
            raise ValueError("the tensor has no dimension")
    count = tensor.shape[0]
    result = tensor.new_empty((workspace.size * count, *tensor.shape[1:]))

    def take(rank, part):
        result[rank * count : (rank + 1) * count].copy_(part)

    _pass_round(workspace, "_low_contention_all_gather", tensor, take)
    return result


def reduce_scatter(tensor, reduce_op, group_name):
    """This rank's part, along the first dimension, of the sum or average of all ranks' tensors."""
    workspace = extension.workspace(group_name)
    size, rank = workspace.size, workspace.rank
    with _checking(workspace):
        _check_reduction(reduce_op, tensor.dtype)
        if tensor.dim() == 0 or tensor.shape[0] % size != 0:
            raise ValueError(
                f"the tensor has the shape {tuple(tensor.shape)}, allowed are multiples of {size} "
                "first"
            )
    shape = (tensor.shape[0] // size, *tensor.shape[1:])
    result = tensor.new_empty(shape)
    what = f"_low_contention_reduce_scatter {reduce_op} {tensor.dtype} {tuple(tensor.shape)}"
    with _call(workspace, what, _bytes(tensor)):
        workspace.slot(rank, tensor.shape, tensor.dtype, 0).copy_(tensor)
        workspace.publish_all()
        workspace.await_all()
        parts = [
            workspace.slot(of, shape, tensor.dtype, rank * _bytes(result)) for of in range(size)
        ]
        extension.combine([result], parts, reduce_op)
        workspace.release_all()
        workspace.end()
    return result


def _meet(tensor, name, group_name):
    if not torch_symm_mem.is_symm_mem_tensor(tensor):
        raise ValueError(
            f"{name} is no symmetric memory; torch.distributed._symmetric_memory.empty() makes it"
        )
    return torch_symm_mem.rendezvous(tensor, group_name)


def _peers_tensor(handle, peer, tensor):
    """The tensor of the peer's memory that has this one's place, shape and strides."""
    size = handle.buffer_size
    flat = extension.buffer(handle, peer, (size // tensor.element_size(),), tensor.dtype, 0)
    return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())


def remote_tensors(tensor, group_name):
    """All ranks' memory in the place of a symmetric tensor, in the order of ranks."""
    handle = _meet(tensor, "x", group_name)
    return [_peers_tensor(handle, peer, tensor) for peer in range(handle.world_size)]


def _blocks(extent, size, offsets, dst_ranks):
    """(begin, end, rank) of each block."""
    if offsets is None:
        if extent % size != 0:
            raise ValueError(
                f"input has {extent} elements along dim, allowed are multiples of {size}"
            )
        offsets = [extent // size * (block + 1) for block in range(size)]
    if dst_ranks is None:
        dst_ranks = [block % size for block in range(len(offsets))]
    begins = [0, *offsets[:-1]]
    if len(dst_ranks) != len(offsets) or any(not 0 <= rank < size for rank in dst_ranks):
        raise ValueError(
            f"dst_ranks is {dst_ranks}, allowed are {len(offsets)} ranks of 0 to {size - 1}"
        )
    if any(begin > end for begin, end in zip(begins, offsets)) or (
        offsets and offsets[-1] > extent
    ):
        raise ValueError(f"offsets is {offsets}, which do not rise to {extent} at most")
    return list(zip(begins, offsets, dst_ranks))


def reduce_scatter_offset(input, out, group, dim, offsets, dst_ranks, red_op):
    """That of torch.distributed._symmetric_memory, for symmetric memory of the CPU."""
    workspace = extension.workspace(group)
    rank = workspace.rank
    with _checking(workspace):
        if input.dim() != 2 or dim not in (0, 1):
            raise ValueError(
                f"input has {input.dim()} dimensions and dim is {dim}, allowed are 2, and 0 or 1"
            )
        _check_reduction(red_op, input.dtype)
        blocks = _blocks(input.shape[dim], workspace.size, offsets, dst_ranks)
        owned = [(begin, end) for begin, end, to in blocks if to == rank]
        if len(out) != len(owned):
            raise ValueError(f"out has {len(out)} tensors, and this rank has {len(owned)} blocks")
        for (begin, end), result in zip(owned, out):
            shape = (end - begin, input.shape[1]) if dim == 0 else (input.shape[0], end - begin)
            if result.shape != shape or result.dtype != input.dtype:
                raise ValueError(
                    f"out has {tuple(result.shape)} of {result.dtype} for a block of {shape} of "
                    f"{input.dtype}"
                )
        handle = _meet(input, "input", group)
    what = (
        f"reduce_scatter_offset {red_op} {input.dtype} {tuple(input.shape)} {input.stride()} at "
        f"{input.storage_offset()} along {dim}: {blocks}"
    )
    with _call(workspace, what, 0):
        workspace.publish_all()
        workspace.await_all()
        peers = [_peers_tensor(handle, peer, input) for peer in range(workspace.size)]
        for (begin, end), result in zip(owned, out):
            parts = [peer.narrow(dim, begin, end - begin) for peer in peers]
            extension.combine([result], parts, red_op)
        workspace.release_all()
        workspace.end_together()


def add():
    """Makes these, and those of the extension, PyTorch's for the CPU. Once."""
    global _library
    extension.enable()
    _library = torch.library.Library("symm_mem", "IMPL")
    _library.impl("fused_all_gather_matmul", all_gather_matmul, "CPU")
    _library.impl("fused_matmul_reduce_scatter", matmul_reduce_scatter, "CPU")
    _library.impl("fused_all_gather_matmul", _all_gather_matmul_with_gradients, "AutogradCPU")
    _library.impl(
        "fused_matmul_reduce_scatter", _matmul_reduce_scatter_with_gradients, "AutogradCPU"
    )
    _library.impl("_low_contention_all_gather", all_gather, "CPU")
    _library.impl("_low_contention_reduce_scatter", reduce_scatter, "CPU")
    _library.impl("get_remote_tensors", remote_tensors, "CPU")
