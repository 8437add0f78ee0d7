# SPDX-License-Identifier: Apache-2.0
"""memspan as the backend of vLLM's groups of the CPU: tensor, pipeline and data parallel on one host.

    MEMSPAN_VLLM_BACKEND=1 vllm serve MODEL --tensor-parallel-size 2

vLLM loads this through the entry point vllm.general_plugins of the wheel (memspan_autoload), in each of its
processes. Two of its names are given to memspan, and the workers do the rest when they make their groups:

    CpuPlatform.dist_backend                "memspan" instead of "gloo": torch.distributed's collectives
    cpu_communicator._CPUSHMDistributed     ``SharedMemory``: those of tensor and pipeline parallel groups

If a group cannot use memspan, vLLM's own is used, and vLLM's log has the reason. Nothing of vLLM is
imported before ``register``.
"""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any

from memspan.connectors import tensor_dicts

if TYPE_CHECKING:
    import torch
    from torch.distributed import ProcessGroup

_NAME = "memspan"
# What vLLM's communicator calls, and the parameters that it gives.
_CALLS = {
    "all_reduce": ["self", "input", "group"],
    "gather": ["self", "input", "gather_list", "dst", "group"],
    "all_gather_into_tensor": ["self", "output", "input", "group"],
    "send_tensor_dict": ["self", "tensor_dict", "dst"],
    "recv_tensor_dict": ["self", "src"],
}


class Collectives:
    """Collectives of one process group whose backend is memspan, with the methods of vLLM's
    ``_CPUSHMDistributed``. One thread at a time, as all collectives of a group; each is over when
    it returns. A rank that died or left is a ``torch.distributed.DistBackendError`` that names it,
    and a call that others do not make is a ValueError."""

    def __init__(self, group: "ProcessGroup") -> None:
        import torch

        self._group = group
        self._name = group.group_name
        self._all_reduce = torch.ops.memspan.all_reduce_.default
        self._all_gather = torch.ops.memspan.all_gather_out.default

    def all_reduce(self, input: "torch.Tensor", group: Any = None) -> None:
        """The sum, in place; all ranks get the same bits."""
        self._all_reduce(input, self._name)

    def all_gather_into_tensor(
        self, output: "torch.Tensor", input: "torch.Tensor", group: Any = None
    ) -> None:
        """All ranks' tensors, one after the other in dimension 0."""
        self._all_gather(output, input, self._name)

    def gather(
        self,
        input: "torch.Tensor",
        gather_list: "list[torch.Tensor] | None",
        dst: int = -1,
        group: Any = None,
    ) -> None:
        """All ranks' tensors at ``dst``, a rank of the world."""
        import torch.distributed as dist

        dist.gather(input, gather_list, dst=dst, group=self._group)

    def send_tensor_dict(self, tensor_dict: "dict[str, torch.Tensor]", dst: int) -> None:
        """Blocks until ``dst``, a rank of the group, has taken what does not fit into the messages' ring.
        RuntimeError for a value that is no tensor."""
        tensor_dicts.send(tensor_dict, dst, self._group)

    def recv_tensor_dict(self, src: int) -> "dict[str, torch.Tensor]":
        """Receives what ``src``, a rank of the group, sends next by ``send_tensor_dict``."""
        return tensor_dicts.receive(src, self._group)


class SharedMemory:
    """Called by vLLM's communicator for a group of tensor or pipeline parallel workers: memspan's
    collectives, or vLLM's own if the group is not memspan's. All ranks of a group come to the
    same."""

    theirs: Any = None  # vLLM's class

    def __init__(self, communicator: Any) -> None:
        reason = why_not(communicator.device_group)
        if reason:
            _logger().warning(
                "memspan: group %s stays with vLLM's shared memory: %s",
                communicator.unique_name,
                reason,
            )
            chosen = self.theirs(communicator)
        else:
            chosen = Collectives(communicator.device_group)
            if communicator.rank == 0:
                _logger().info(
                    "memspan has taken over all-reduce, all-gather, gather and tensor dicts of group %s (%d ranks)",
                    communicator.unique_name,
                    communicator.world_size,
                )
        for name in _CALLS:
            setattr(self, name, getattr(chosen, name))

    @classmethod
    def make_group_name(cls, communicator: Any) -> str:
        """vLLM's own; its communicator compares the ranks' names before it uses shared memory."""
        return str(cls.theirs.make_group_name(communicator))


class BackendName:
    """The value of ``CpuPlatform.dist_backend``: the name that a worker passes to
    torch.distributed. Decided, and said in the log, when a worker asks for the first time, since
    only workers make groups."""

    def __init__(self, theirs: str) -> None:
        self.theirs = theirs
        self._chosen: str | None = None

    def __get__(self, instance: Any, owner: Any = None) -> str:
        if self._chosen is None:
            reason = why_no_backend(_parallel_config())
            self._chosen = self.theirs if reason else _NAME
            if reason:
                _logger().warning("memspan: the groups stay with %s: %s", self.theirs, reason)
        return self._chosen


def register() -> None:
    """Gives vLLM's groups of the CPU to memspan, as far as it can; the log says what it cannot. May be called
    again."""
    from vllm.platforms import current_platform

    if not current_platform.is_cpu():
        _logger().warning(
            "memspan: MEMSPAN_VLLM_BACKEND is 1, and vLLM runs on %s: memspan's backend is for the CPU",
            current_platform.device_name,
        )
        return
    for take in (_take_backend, _take_shared_memory):
        reason = take()
        if reason:
            _logger().warning("memspan: %s", reason)


def why_not(group: Any) -> str:
    """Why a group's collectives cannot be memspan's; empty when they can."""
    import torch.distributed as dist

    backend = dist.get_backend(group)
    return "" if backend == _NAME else f"the backend of its group is {backend}, not {_NAME}"


def why_no_backend(parallel: Any) -> str:
    """Why the groups of a vLLM whose ``parallel_config`` this is (None: not known) cannot be memspan's; empty
    when they can. Compiles the backend if it has to."""
    if getattr(parallel, "nnodes", 1) > 1:
        return f"there are {parallel.nnodes} hosts, and the ranks of memspan's groups are on one"
    if getattr(parallel, "distributed_executor_backend", None) == "ray":
        return "Ray may put workers on several hosts, and the ranks of memspan's groups are on one"
    if getattr(parallel, "enable_elastic_ep", False):
        return "elastic expert parallelism makes groups that torch.distributed does not know"
    from memspan.torch import native, process_group

    return "" if process_group.is_compiled() else str(native.why_not("process_group"))


def _take_backend() -> str:
    """Why not, or an empty text."""
    import memspan_autoload
    from vllm.platforms.cpu import CpuPlatform

    theirs = vars(CpuPlatform).get("dist_backend")
    if isinstance(theirs, BackendName):
        return ""
    if not isinstance(theirs, str):
        return f"the groups stay as they are: CpuPlatform.dist_backend of this vLLM is {theirs!r}, no name"
    memspan_autoload.register()  # torch does, unless TORCH_DEVICE_BACKEND_AUTOLOAD is 0
    CpuPlatform.dist_backend = BackendName(theirs)  # type: ignore[assignment]
    return ""


def _take_shared_memory() -> str:
    """Why not, or an empty text."""
    from vllm.distributed.device_communicators import cpu_communicator

    theirs = getattr(cpu_communicator, "_CPUSHMDistributed", None)
    if theirs is SharedMemory:
        return ""
    reason = _difference(theirs)
    if reason:
        return f"the collectives of tensor parallel groups stay with vLLM: {reason}"
    SharedMemory.theirs = theirs
    cpu_communicator._CPUSHMDistributed = SharedMemory  # type: ignore[misc]
    return ""


def _difference(theirs: Any) -> str:
    """The differences between vLLM's class and the one that ``Collectives`` replaces; else
    empty."""
    if theirs is None:
        return "this vLLM has no cpu_communicator._CPUSHMDistributed"
    if not hasattr(theirs, "make_group_name"):
        return "its _CPUSHMDistributed has no make_group_name"
    for name, expected in _CALLS.items():
        call = getattr(theirs, name, None)
        if call is None:
            return f"its _CPUSHMDistributed has no {name}"
        given = list(inspect.signature(call).parameters)
        if given != expected:
            return f"its _CPUSHMDistributed.{name} takes {', '.join(given)}, expected are {', '.join(expected)}"
    return ""


def _parallel_config() -> Any:
    """The configuration of the worker that is being started, None elsewhere."""
    from vllm.config import get_current_vllm_config_or_none

    config = get_current_vllm_config_or_none()
    return None if config is None else config.parallel_config


def _logger() -> logging.Logger:
    """vLLM shows what loggers below its own say."""
    from vllm.logger import init_logger

    return init_logger(f"vllm.{__name__}")
