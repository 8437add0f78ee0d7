# SPDX-License-Identifier: Apache-2.0
"""Symmetric tensors, one-sided operations, collectives and fused products on them.

Tensors are of the CPU, or of a GPU with MEMSPAN_DEVICE=cuda (memspan.torch.cuda): one-sided operations on these
are work of a stream, PyTorch's current one unless ``stream`` says another. Collectives and fused products
are the CPU's. Units are elements of the tensor's dtype. Every process of the job takes part in what is collective
(said at each), with the same shapes; wrong arguments are a ValueError before anything moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from memspan.errors import Error
from memspan.torch import _staging, cuda, one_sided
from memspan.torch.handle import Pads, SymmetricMemory
from memspan.torch.heap import heap, is_started, span_bytes

_HALVES = (torch.float16, torch.bfloat16)


def _wrong_device(**tensors):
    """Why collectives do not take them, or None."""
    for name, tensor in tensors.items():
        if tensor.device.type != "cpu":
            return (
                f"{name} is on {tensor.device}, allowed are tensors of the CPU: for those of a GPU there are puts, "
                f"gets and signals here, and torch.distributed's backend nccl"
            )
    return None


class TorchSymmetricMemoryHandler:
    """All methods are static; the first use starts the job, collectively."""

    comm_streams: tuple[Any, ...] = ()  # tensors of a GPU take PyTorch's current stream
    compute_streams: tuple[Any, ...] = ()

    # ---- memory

    @staticmethod
    def is_shmem_available() -> bool:
        """Whether symmetric tensors can be had: the job has started, or can be."""
        if is_started():
            return True
        try:
            heap()
        except (Error, ValueError):
            return False
        return True

    @staticmethod
    def empty(
        shape: int | Sequence[int],
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
    ) -> torch.Tensor:
        """A symmetric tensor of zeros, of "cpu" or "cuda". Collective. shape: an int, tuple or list, in elements.
        ValueError for extents below 0 and for a GPU without MEMSPAN_DEVICE=cuda, and on all ranks
        when memory is short."""
        shape = (shape,) if isinstance(shape, int) else tuple(int(extent) for extent in shape)
        if any(extent < 0 for extent in shape):
            raise ValueError(f"shape is {shape}, extents are 0 and more")
        device = torch.device(device)
        cuda.check_device(device)
        # The job takes the GPU that is the thread's when it starts.
        with cuda.current(device.index if device.type == "cuda" else None):
            return heap().empty(shape, dtype, device)

    @staticmethod
    def barrier(stream: Any = None) -> None:
        """Waits until all ranks have arrived and all puts are complete. Collective. With a stream
        of a GPU: in its order, and the call does not wait; without, it also waits for earlier work
        of streams."""
        if stream is None:
            heap().barrier()
        else:
            heap().barrier_on_stream(stream)

    @staticmethod
    def rendezvous(tensor: torch.Tensor, group: Any = None) -> SymmetricMemory:
        """A ``SymmetricMemory`` of a symmetric tensor. Collective. Only the group of all: ValueError for
        another, and for a tensor that is not symmetric."""
        one_sided.check_symmetric(tensor, "tensor")
        name = getattr(group, "group_name", group)
        if name not in (None, "", "0", "default_pg") and _size_of(group) != heap().world:
            raise ValueError(f"group is {name}, allowed is the group of all {heap().world} ranks")
        return SymmetricMemory(tensor)

    @staticmethod
    def set_signal_pad_size(size: int) -> None:
        """Bytes of the pads that ``rendezvous`` makes, multiples of 4; ValueError for others, and after the
        first of them."""
        if Pads.is_used:
            raise ValueError("signal pads are in use already; their size stays")
        if size <= 0 or size % 4:
            raise ValueError(f"size is {size}, allowed are multiples of 4, 4 and more")
        Pads.size = size

    @staticmethod
    def get_signal_pad_size() -> int:
        """Bytes of the pads that ``rendezvous`` makes."""
        return Pads.size

    # ---- one-sided

    @staticmethod
    def shmem_put(
        target: torch.Tensor,
        target_offset: one_sided.Number,
        src: torch.Tensor,
        src_offset: one_sided.Number,
        size: one_sided.Number,
        target_rank: int,
        stream: Any = None,
    ) -> None:
        """``size`` elements of ``src`` here to ``target`` at a rank; ``src`` may change on return.
        Offsets are also in elements; both are contiguous and of one dtype. ValueError for what does
        not fit, for another rank, and for a target that is not symmetric."""
        on = cuda.stream_for(stream, target=target, src=src)
        move = one_sided.Move(target, target_offset, src, src_offset, size, target_rank)
        one_sided.check_symmetric(target, "target")
        move.put(on)
        one_sided.finish(on, src, target)

    @staticmethod
    def shmem_get(
        target: torch.Tensor,
        target_offset: one_sided.Number,
        src: torch.Tensor,
        src_offset: one_sided.Number,
        size: one_sided.Number,
        target_rank: int,
        stream: Any = None,
    ) -> None:
        """Copies ``size`` elements of ``src`` at a rank to the local ``target``; complete on
        return. As ``shmem_put``, with ``src`` symmetric."""
        on = cuda.stream_for(stream, target=target, src=src)
        move = one_sided.Move(target, target_offset, src, src_offset, size, target_rank)
        one_sided.check_symmetric(src, "src")
        move.get(on)
        one_sided.finish(on, target, src)

    @staticmethod
    def shmem_signal_op(
        signal: torch.Tensor,
        signal_offset: one_sided.Number,
        signal_value: one_sided.Number,
        signal_op: int,
        target_rank: int,
        stream: Any = None,
    ) -> None:
        """One int32 of ``signal``, which is symmetric, at a rank becomes (``signal_op`` 0) or grows by (1) the
        value. ValueError for a missing rank or word, and for adding to memory of a GPU."""
        on = cuda.stream_for(stream, signal=signal)
        one_sided.Change(signal, signal_offset, signal_value, signal_op, target_rank).make(on)
        one_sided.finish(on, None, signal)

    @staticmethod
    def shmem_put_with_signal(
        target: torch.Tensor,
        target_offset: one_sided.Number,
        src: torch.Tensor,
        src_offset: one_sided.Number,
        size: one_sided.Number,
        signal: torch.Tensor,
        signal_offset: one_sided.Number,
        signal_value: one_sided.Number,
        signal_op: int,
        target_rank: int,
        stream: Any = None,
    ) -> None:
        """``shmem_put``, then ``shmem_signal_op``: a rank that sees the signal sees the elements.
        ``signal`` may be of the CPU where the elements are a GPU's."""
        on = cuda.stream_for(stream, target=target, src=src, signal=signal)
        change = one_sided.Change(signal, signal_offset, signal_value, signal_op, target_rank)
        move = one_sided.Move(target, target_offset, src, src_offset, size, target_rank)
        one_sided.check_symmetric(target, "target")
        move.put(on)
        change.make(on)
        one_sided.finish(on, src, target, signal)

    @staticmethod
    def shmem_wait_for_signal(
        depend_tensor: torch.Tensor | None,
        signal: torch.Tensor,
        signal_offset: one_sided.Number,
        compare_value: one_sided.Number,
        compare_op: int,
        stream: Any = None,
    ) -> None:
        """Waits until one int32 of the local ``signal`` is equal to (0), greater (1) or less (2)
        than the value. Later operations come later, whatever ``depend_tensor`` is; if it or
        ``signal`` is on a GPU, this holds for operations of the stream, and the call does not wait.
        ``memspan.PeerFailed`` when a rank died."""
        on = cuda.stream_for(stream, depend_tensor=depend_tensor, signal=signal)
        one_sided.wait_until(signal, signal_offset, compare_value, compare_op, on)
        one_sided.finish(on, None, signal)

    # ---- collectives

    @staticmethod
    def shmem_allgather(
        output_tensor: torch.Tensor, input_tensor: torch.Tensor
    ) -> torch.Tensor:
        """Gathers every rank's ``input_tensor``, by rank, into ``output_tensor`` of all.
        Collective. Any memory; ``input_tensor`` may be this rank's part of the other. Returns
        ``output_tensor``; ValueError on all when one rank's do not fit."""
        world = heap().world
        wrong = _wrong_device(output_tensor=output_tensor, input_tensor=input_tensor)
        if wrong is not None:
            pass
        elif input_tensor.numel() * world != output_tensor.numel():
            wrong = (
                f"output has {output_tensor.numel()} elements, needed are {world} times the "
                f"{input_tensor.numel()} of input"
            )
        elif input_tensor.dtype != output_tensor.dtype:
            wrong = f"input is of {input_tensor.dtype}, and output of {output_tensor.dtype}"
        _staging.agree(wrong is None, wrong)
        counts = _staging.Stage.get().exchange([span_bytes(input_tensor.contiguous())] * world)
        _staging.agree(len(set(counts)) == 1, f"the ranks bring different numbers of bytes: {counts}")
        target = output_tensor if output_tensor.is_contiguous() else output_tensor.contiguous()
        source = _staging.bytes_of(input_tensor.contiguous())
        parts = _staging.bytes_of(target).view(world, -1) if source.numel() else None
        stage = _staging.Stage.get()
        for begin in range(0, source.numel(), stage.block):
            piece = source[begin : begin + stage.block]
            parts[:, begin : begin + piece.numel()].copy_(stage.gather(piece))
        if target is not output_tensor:
            output_tensor.copy_(target.view(output_tensor.shape))
        return output_tensor

    @staticmethod
    def shmem_alltoall(
        send_tensor_list: Sequence[torch.Tensor],
        receive_tensor: torch.Tensor,
        receive_list: Sequence[int] | torch.Tensor,
    ) -> torch.Tensor:
        """Tensor i of the list to rank i; what comes is laid into ``receive_tensor`` by rank, of which
        ``receive_list`` (ints or a tensor, in elements) says how much each one has. Collective. Returns ``receive_tensor``;
        ValueError on all when something does not fit."""
        job = heap()
        expected = [int(count) for count in receive_list]
        sizes = [tensor.numel() for tensor in send_tensor_list]
        sent = {f"send_tensor_list[{i}]": tensor for i, tensor in enumerate(send_tensor_list)}
        wrong = _wrong_device(receive_tensor=receive_tensor, **sent)
        if wrong is not None:
            pass
        elif len(sizes) != job.world or len(expected) != job.world:
            wrong = f"there are {len(sizes)} tensors and {len(expected)} counts for {job.world} ranks"
        elif any(tensor.dtype != receive_tensor.dtype for tensor in send_tensor_list):
            wrong = f"all tensors must be of {receive_tensor.dtype}, as receive_tensor is"
        elif min(expected) < 0 or sum(expected) > receive_tensor.numel():
            wrong = f"{expected} elements do not fit into the {receive_tensor.numel()} to receive"
        elif not receive_tensor.is_contiguous():
            wrong = "receive_tensor is not contiguous"
        _staging.agree(wrong is None, wrong)
        coming = _staging.Stage.get().exchange(sizes)
        _staging.agree(coming == expected, f"receive_list is {expected}, and the ranks send {coming}")
        element = receive_tensor.element_size()
        _staging.move_all(
            [_staging.bytes_of(tensor.contiguous()) for tensor in send_tensor_list],
            _staging.bytes_of(receive_tensor),
            [count * element for count in expected],
        )
        return receive_tensor

    # ---- fused

    @staticmethod
    def fused_all_gather_matmul(
        a: torch.Tensor,
        b: torch.Tensor,
        c: torch.Tensor,
        gather_out: torch.Tensor,
        signal: torch.Tensor | None = None,
        block_size: int | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """``gather_out`` becomes the ``a`` of all ranks, by rank, and ``c`` the product of that and
        ``b``: (gather_out, c). Collective. a (m, k), b (k, n), gather_out (m * world, k),
        c (m * world, n). A rank's part is multiplied as soon as it arrives; ``signal`` and
        ``block_size`` are accepted, and memory of the library's own used instead. ValueError on all
        for shapes or types that do not fit."""
        del signal, block_size
        job = heap()
        wrong = _wrong_device(a=a, b=b, c=c, gather_out=gather_out) or _wrong_product(a, b, "a", "b")
        if wrong is None:
            rows = a.shape[0] * job.world
            wanted = {"gather_out": (gather_out, (rows, a.shape[1])), "c": (c, (rows, b.shape[1]))}
            for name, (tensor, shape) in wanted.items():
                if tuple(tensor.shape) != shape or tensor.dtype != a.dtype:
                    wrong = f"{name} is {tuple(tensor.shape)} of {tensor.dtype}, needed is {shape} of {a.dtype}"
        _staging.agree(wrong is None, wrong)
        _staging.agree_alike(tuple(a.shape), tuple(b.shape), a.dtype)
        shared = _staging.Workspace.at_least(span_bytes(a.contiguous()))
        flags = _staging.Flags.next()
        mine = shared[: a.numel() * a.element_size()].view(a.dtype).view(a.shape)
        mine.copy_(a)
        for rank in range(job.world):
            flags.raise_at(rank)
        height = a.shape[0]
        for step in range(job.world):
            rank = (job.rank + step) % job.world
            flags.wait_for(rank)
            part = job.read(mine, rank)
            place = slice(rank * height, (rank + 1) * height)
            gather_out[place].copy_(part)
            c[place] = torch.mm(part, b)
        job.barrier()  # all have read what is here
        return gather_out, c

    @staticmethod
    def fused_matmul_reduce_scatter(
        x1: torch.Tensor,
        x2: torch.Tensor,
        symm_tensor: torch.Tensor | None = None,
        signal: torch.Tensor | None = None,
        reduce_op: str = "sum",
    ) -> torch.Tensor:
        """Rows of this rank of the sum over all ranks of ``x1 @ x2``: (m / world, n). Collective.
        reduce_op: "sum", or "avg", which divides by the number of ranks. Halves are added in float32,
        in the order of the ranks, and rounded once: the same bits on every rank. ValueError on all
        for shapes or types that do not fit."""
        del signal, symm_tensor
        job = heap()
        wrong = _wrong_device(x1=x1, x2=x2) or _wrong_product(x1, x2, "x1", "x2")
        if wrong is None and x1.shape[0] % job.world:
            wrong = f"x1 has {x1.shape[0]} rows, allowed are multiples of {job.world}"
        if wrong is None and reduce_op not in ("sum", "avg"):
            wrong = f'reduce_op is "{reduce_op}", allowed are "sum" and "avg"'
        _staging.agree(wrong is None, wrong)
        _staging.agree_alike(tuple(x1.shape), tuple(x2.shape), x1.dtype, reduce_op)
        height, width = x1.shape[0] // job.world, x2.shape[1]
        # Products for others are rounded to the inputs' type no earlier than the sum is.
        wide = torch.float32 if x1.dtype in _HALVES else x1.dtype
        part = height * width * wide.itemsize
        shared = _staging.Workspace.at_least(part * job.world)
        slots = shared[: part * job.world].view(wide).view(job.world, height, width)
        flags = _staging.Flags.next()
        for step in range(1, job.world + 1):
            owner = (job.rank + step) % job.world
            rows = x1[owner * height : (owner + 1) * height]
            job.write(slots[job.rank], owner, torch.mm(rows.to(wide), x2.to(wide)))
            flags.raise_at(owner)
        total = None
        for rank in range(job.world):
            flags.wait_for(rank)
            total = slots[rank].clone() if total is None else total.add_(slots[rank])
        if reduce_op == "avg":
            total = total / job.world if total.is_floating_point() else total // job.world
        job.barrier()  # nobody writes here for a later call before this one has read
        return total.to(x1.dtype)


def _size_of(group):
    import torch.distributed as dist

    try:
        return dist.get_world_size(group)
    except (ValueError, RuntimeError, AttributeError, TypeError):
        return None


def _wrong_product(left, right, left_name, right_name):
    """Why they cannot be multiplied, or None."""
    if left.dim() != 2 or right.dim() != 2:
        return f"{left_name} has {left.dim()} dimensions and {right_name} {right.dim()}, needed are 2"
    if left.shape[1] != right.shape[0]:
        return f"{left_name} has {left.shape[1]} columns, and {right_name} {right.shape[0]} rows"
    if left.dtype != right.dtype:
        return f"{left_name} is of {left.dtype}, and {right_name} of {right.dtype}"
    return None
