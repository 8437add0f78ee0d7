# SPDX-License-Identifier: Apache-2.0
"""What `import torch` calls (entry point torch.backends; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns that
off): makes `init_process_group("memspan")` work without another import. Loads nothing of memspan until
a group is made."""


def register():
    """Makes the name known to torch.distributed, unless it is."""
    import torch.distributed as dist

    if dist.is_available() and not hasattr(dist.Backend, "MEMSPAN"):
        dist.Backend.register_backend("memspan", _create, extended_api=True, devices=["cpu"])


def _create(options, backend_options):
    from memspan.torch import process_group

    return process_group.create(options, backend_options)
