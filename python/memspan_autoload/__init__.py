# SPDX-License-Identifier: Apache-2.0
"""What `import torch` calls (entry point torch.backends; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns that
off): makes `init_process_group("memspan")` work without another import. Loads nothing of memspan until
a group is made."""


def register():
    """Makes the name known to torch.distributed, unless it is."""
    import torch.distributed as dist

    if not dist.is_available() or hasattr(dist.Backend, "MEMSPAN"):
        return
    dist.Backend.register_backend("memspan", _create, extended_api=True, devices=["cpu"])
    try:
        from torch.distributed import _dist2
    except ImportError:  # an experiment of PyTorch's, which may go
        return
    if "memspan" not in _dist2._BACKENDS:
        _dist2.register_backend("memspan", _create_alone)


def _create(options, backend_options):
    from memspan.torch import process_group

    return process_group.create(options, backend_options)


def _create_alone(store, rank, world_size, timeout, device, **options):
    from memspan.torch import process_group

    return process_group.create_alone(store, rank, world_size, timeout, device, **options)
