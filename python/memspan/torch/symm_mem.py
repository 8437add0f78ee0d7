# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own symmetric memory (``torch.distributed._symmetric_memory``) on the CPU.

    import memspan.torch
    import torch.distributed._symmetric_memory as symm_mem

    memspan.torch.enable_symmetric_memory()
    mine = symm_mem.empty(1024, dtype=torch.float32, device="cpu")  # local
    handle = symm_mem.rendezvous(mine, group)                       # collective
    handle.get_buffer(peer, (1024,), torch.float32)                 # the peer's memory itself
    torch.ops.symm_mem.fused_all_gather_matmul(a, [b], 0, group.group_name)

Any process group of one host will do. If its backend is memspan, symmetric memory uses its group: a
rendezvous is then one of the group's collectives, in their order. For another backend's the members
join a group of their own through its store. The process group's time-out bounds every wait that
says none of its own. A dead peer is memspan.errors.PeerFailed, an end of time
memspan.errors.Timeout (a TimeoutError). Wrong arguments are a ValueError, in operations on all
ranks. After a time-out, a death or Ctrl-C in an operation, the group's later ones also fail.

Other devices stay as they are. Supported on the CPU:

- ``empty``, ``rendezvous``, handles, ``get_symm_mem_workspace``, ``put_signal``, ``wait_signal``,
  ``reduce_scatter_offset``, signal pads, ``is_symm_mem_tensor``. Memory is zeros at first, and
  lives as long as a handle or a tensor of ``get_buffer`` does. Waits let other threads run.
- of ``torch.ops.symm_mem``: ``fused_all_gather_matmul``, ``fused_matmul_reduce_scatter`` (both with
  gradients), ``one_shot_all_reduce`` with ``_out``, ``_copy`` and ``_copy_out``,
  ``two_shot_all_reduce_`` and ``_out``, ``reduce_scatter_out``, ``all_to_all_vdev``,
  ``get_remote_tensors``, ``_low_contention_all_gather`` and ``_reduce_scatter``, ``memset32_``,
  ``stream_write_value32_``. They are done when they return; the ranks of a group call them in one
  order, one thread of a process at a time.

Reductions combine in the order of ranks, the half types as floats that are rounded once, so that
the bits are the same on every rank. An all-reduce has sum, avg, min, max and product; min and max
are of no NaN. Multicast is not supported, and no function that is named after a device's library.
"""

import torch
import torch.distributed._symmetric_memory as torch_symm_mem
from memspan.errors import Error
from memspan.torch import native
from torch._C._distributed_c10d import _resolve_process_group, _SymmetricMemory

_is_enabled = False
_workspaces = {}  # by group name: the tensor


def enable():
    """Lets PyTorch's symmetric memory be used on the CPU, in this process. Not collective. The
    first call compiles the C++ part; memspan.errors.Error has the reason if that fails."""
    global _is_enabled
    if _is_enabled:
        return
    extension = native.load("symmetric_memory")
    if extension is None:
        raise Error(f"symmetric memory of PyTorch: {native.why_not('symmetric_memory')}")
    extension.enable()
    _give_handles_lasting_tensors(extension)
    _add_to_functions(extension)
    _is_enabled = True


def _give_handles_lasting_tensors(extension):
    """PyTorch's own tensors of a handle do not keep its memory."""
    buffer_of_others = _SymmetricMemory.get_buffer
    pad_of_others = _SymmetricMemory.get_signal_pad
    remote_of_others = _SymmetricMemory.get_remote_tensor

    def get_buffer(self, rank, sizes, dtype, storage_offset=0):
        """The memory of ``rank`` as a tensor of those sizes, from an element on."""
        if self.device.type != "cpu":
            return buffer_of_others(self, rank, sizes, dtype, storage_offset)
        return extension.buffer(self, rank, sizes, dtype, storage_offset)

    def get_remote_tensor(self, peer, sizes, dtype):
        """The memory of ``peer`` from where the tensor of the rendezvous begins."""
        if self.device.type != "cpu":
            return remote_of_others(self, peer, sizes, dtype)
        room = self.buffer_size - self.offset
        flat = extension.buffer(self, peer, (room,), torch.uint8, self.offset)
        count = torch.Size(sizes).numel() * dtype.itemsize
        if count > flat.numel():
            raise ValueError(f"{count} bytes are asked for, and there are {flat.numel()}")
        return flat[:count].view(dtype).view(sizes)

    def get_signal_pad(self, rank, sizes=(), dtype=None, storage_offset=0):
        """The signal pad of ``rank``, all of it when no sizes are said; uint32 without a dtype."""
        if self.device.type != "cpu":
            return pad_of_others(self, rank, sizes, dtype, storage_offset)
        return extension.signal_pad(self, rank, sizes, dtype, storage_offset)

    _SymmetricMemory.get_buffer = get_buffer
    _SymmetricMemory.get_remote_tensor = get_remote_tensor
    _SymmetricMemory.get_signal_pad = get_signal_pad


def _add_to_functions(extension):
    """Those of the module that know their devices by name."""
    workspace_of_others = torch_symm_mem.get_symm_mem_workspace
    put_of_others = torch_symm_mem.put_signal
    wait_of_others = torch_symm_mem.wait_signal
    reduce_of_others = torch_symm_mem.reduce_scatter_offset

    def get_symm_mem_workspace(group_name, min_size):
        """A handle of memory that the group's users share, of at least so many bytes: of the CPU
        where the group has no other device. Collective when it is not that large yet."""
        if _has_accelerator(group_name):
            return workspace_of_others(group_name, min_size)
        tensor = _workspaces.get(group_name)
        if tensor is None or tensor.numel() < min_size:
            tensor = _SymmetricMemory.empty_strided_p2p(
                (min_size,), (1,), torch.uint8, torch.device("cpu"), group_name
            )
            _workspaces[group_name] = tensor
        return _SymmetricMemory.rendezvous(tensor, group_name)

    def put_signal(src, hdl, peer):
        """Copies ``src`` to where the tensor of the rendezvous begins at ``peer``, and signals
        that on channel 0."""
        if src.device.type != "cpu":
            return put_of_others(src, hdl, peer)
        hdl.get_remote_tensor(peer, src.shape, src.dtype).copy_(src)
        hdl.put_signal(peer)

    def wait_signal(hdl, peer):
        """Waits for what ``peer`` has put."""
        if hdl.device.type != "cpu":
            return wait_of_others(hdl, peer)
        hdl.wait_signal(peer)

    def reduce_scatter_offset(
        input, out, group, *, dim, offsets=None, dst_ranks=None, red_op="sum"
    ):
        if input.device.type != "cpu":
            return reduce_of_others(
                input, out, group, dim=dim, offsets=offsets, dst_ranks=dst_ranks, red_op=red_op
            )
        extension.reduce_scatter_offset(input, out, group, dim, offsets, dst_ranks, red_op)

    reduce_scatter_offset.__doc__ = reduce_of_others.__doc__
    torch_symm_mem.get_symm_mem_workspace = get_symm_mem_workspace
    torch_symm_mem.put_signal = put_signal
    torch_symm_mem.wait_signal = wait_signal
    torch_symm_mem.reduce_scatter_offset = reduce_scatter_offset


def _has_accelerator(group_name):
    devices = _resolve_process_group(group_name)._device_types
    return torch.cuda.is_available() and any(device.type == "cuda" for device in devices)
