# SPDX-License-Identifier: Apache-2.0
"""The gradients of torch.ops.symm_mem's fused products on the CPU: each is the other's.

csrc/gradients.h calls the two functions below for tensors that want gradients, and in PyTorch's
test mode, which has implementations of its own.
"""

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from torch.autograd.function import once_differentiable


def all_gather_matmul(A, Bs, gather_dim, group_name, return_A):
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem._fused_all_gather_matmul_fallback(
            A, Bs, gather_dim, group_name, return_A=return_A
        )
    whole, *products = _AllGatherMatmul.apply(A, gather_dim, group_name, return_A, *Bs)
    return whole, products


def matmul_reduce_scatter(A, B, reduce_op, scatter_dim, group_name):
    if torch_symm_mem._is_test_mode:
        return torch_symm_mem._fused_matmul_reduce_scatter_fallback(
            A, B, reduce_op, scatter_dim, group_name
        )
    return _MatmulReduceScatter.apply(A, B, reduce_op, scatter_dim, group_name)


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
    @once_differentiable
    def backward(ctx, grad_whole, *grads):
        whole, *Bs = ctx.saved_tensors
        grads = [
            b.new_zeros(shape) if grad is None else grad
            for b, shape, grad in zip(Bs, ctx.shapes, grads)
        ]
        grad_A, grad_Bs = None, [None] * len(Bs)
        if ctx.needs_input_grad[0]:
            of_A = []
            if Bs:  # one operation for all: the products side by side
                of_A.append(
                    torch.ops.symm_mem.fused_matmul_reduce_scatter(
                        torch.cat(grads, -1),
                        torch.cat(Bs, 1).mH,
                        "sum",
                        ctx.dimension,
                        ctx.group_name,
                    )
                )
            if grad_whole is not None:
                of_A.append(_reduce_scatter_along(grad_whole, ctx.dimension, ctx.group_name))
            grad_A = sum(of_A) if of_A else None
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
    @once_differentiable
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
