# SPDX-License-Identifier: Apache-2.0
"""torch.distributed's backend "memspan": tensors of the CPU, the processes of one host.

    torch.distributed.init_process_group("memspan")        # or "cpu:memspan,cuda:nccl"

All collectives that DDP and FSDP2 use, messages, sub-groups. Reductions combine the ranks in their
order, half types as float32, so that every rank gets the same bits. A rank that dies is named by every
wait for it. The compiled form needs a C++ compiler once (memspan.torch.native); without one, or with
MEMSPAN_TORCH_BUILD=0, a form in Python does the same, slower.
"""

import torch.distributed as dist

from memspan.torch import native

NAME = "memspan"


def register():
    """Makes the name known to torch.distributed; importing memspan.torch does it."""
    if dist.is_available() and not hasattr(dist.Backend, NAME.upper()):
        dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def is_compiled():
    """Whether groups are made by the compiled form, which this call compiles if it has to."""
    return native.load("process_group") is not None


def _create(options, _):
    extension = native.load("process_group")
    if extension is not None:
        make = extension.create
    else:
        from memspan.torch.python_group import PythonGroup as make
    return make(options.store, options.group_rank, options.group_size, options.timeout)
