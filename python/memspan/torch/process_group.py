# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "memspan": tensors of the CPU, ranks on one host or several.

    torch.distributed.init_process_group("memspan")        # or "cpu:memspan,cuda:nccl"

The installed package makes the name known to PyTorch (memspan_autoload); importing memspan.torch
also does. All collectives that DDP and FSDP2 use, messages and sub-groups are supported. Reductions
combine the ranks in their order, half types as float32, so that every rank gets the same bits. A
rank that dies is named by every wait for it. The backend is C++ and is compiled once
(memspan.torch.native).
"""

import atexit
import datetime
import os
import sys

from memspan.errors import Error
from memspan.torch import native

# Other ranks may take part later in what this one's script started before it ended.
_PATIENCE_S = 2
_leaves = set()  # leave_all() of the extension once it is in use
os.register_at_fork(after_in_child=_leaves.clear)  # its parent's groups are not its own


def is_compiled():
    """Whether the backend can be used. Compiles it if it has to."""
    return native.load("process_group") is not None


def _extension():
    extension = native.load("process_group")
    if extension is None:
        raise Error(f"the backend memspan of torch.distributed: {native.why_not('process_group')}")
    _leaves.add(extension.leave_all)
    return extension


def create(options, _=None):
    """Called by torch.distributed for a group (`_DistributedBackendOptions`). Collective."""
    return _extension().create(
        options.store, options.group_rank, options.group_size, options.timeout
    )


def create_alone(store, rank, size, timeout, device, **options):
    """Called by torch.distributed._dist2.new_group: a group that no registry knows. Collective."""
    from torch.distributed import ProcessGroup

    if options:
        raise ValueError(f"the backend memspan has no options, and got {', '.join(options)}")
    if device.type != "cpu":
        raise ValueError(
            f"the backend memspan moves tensors of the CPU, and device is {device}; for CUDA make a group of nccl"
        )
    backend = _extension().create(store, rank, size, timeout)
    group = ProcessGroup(store, rank, size)
    group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
    group._register_backend(device, ProcessGroup.BackendType.CUSTOM, backend)
    return group


@atexit.register
def _leave_all():
    """Notifies the ranks that wait for this one that it ends; at once after an uncaught
    exception."""
    seconds = 0 if hasattr(sys, "last_value") else _PATIENCE_S
    for leave_all in _leaves:
        leave_all(datetime.timedelta(seconds=seconds))
