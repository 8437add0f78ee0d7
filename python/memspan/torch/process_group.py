# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "memspan": tensors of the CPU, the processes of one host.

    torch.distributed.init_process_group("memspan")        # or "cpu:memspan,cuda:nccl"

The installed package makes the name known to PyTorch (memspan_autoload); importing memspan.torch does,
too.
All collectives that DDP and FSDP2 use, messages, sub-groups. Reductions combine the ranks in their
order, half types as float32, so that every rank gets the same bits. A rank that dies is named by every
wait for it. The compiled form needs a C++ compiler once (memspan.torch.native); without one, or with
MEMSPAN_TORCH_BUILD=0, a form in Python does the same, slower.
"""

import atexit
import datetime
import os
import sys

from memspan.torch import native

# A script that ends may have started what others take part in later than it does.
_PATIENCE_S = 2
_leaves = set()  # the functions of the forms in use
os.register_at_fork(after_in_child=_leaves.clear)  # its parent's groups are not its own


def is_compiled():
    """Whether groups are made by the compiled form, which this call compiles if it has to."""
    return native.load("process_group") is not None


def create(options, _=None):
    """What torch.distributed calls for a group (`_DistributedBackendOptions`). Collective."""
    extension = native.load("process_group")
    if extension is not None:
        make = extension.create
        _leaves.add(extension.leave_all)
    else:
        from memspan.torch import python_group

        make = python_group.PythonGroup
        _leaves.add(python_group.leave_all)
    return make(options.store, options.group_rank, options.group_size, options.timeout)


def create_alone(store, rank, size, timeout, device, **options):
    """What torch.distributed._dist2.new_group calls: a group that no registry knows. Collective."""
    from torch.distributed import ProcessGroup

    if options:
        raise ValueError(f"the backend memspan has no options, and got {', '.join(options)}")
    if device.type != "cpu":
        raise ValueError(f"the backend memspan moves tensors of the CPU, and device is {device}")
    extension = native.load("process_group")
    if extension is None:
        raise NotImplementedError(
            "torch.distributed._dist2.new_group needs the compiled form of the backend memspan: "
            f"{native.why_not('process_group')}"
        )
    _leaves.add(extension.leave_all)
    group = ProcessGroup(store, rank, size)
    group._set_default_backend(ProcessGroup.BackendType.CUSTOM)
    group._register_backend(
        device, ProcessGroup.BackendType.CUSTOM, extension.create(store, rank, size, timeout)
    )
    return group


@atexit.register
def _leave_all():
    """Tells the ranks that wait for this one that it ends; at once after an uncaught exception."""
    seconds = 0 if hasattr(sys, "last_value") else _PATIENCE_S
    for leave_all in _leaves:
        leave_all(datetime.timedelta(seconds=seconds))
