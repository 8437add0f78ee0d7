# SPDX-License-Identifier: Apache-2.0
"""Entry points that other packages call in each of their processes; loads nothing of memspan until
it is needed.

- ``import torch`` calls ``register`` (entry point torch.backends; TORCH_DEVICE_BACKEND_AUTOLOAD=0 turns that off): it
  makes ``init_process_group("memspan")`` work without another import, and, if MEMSPAN_SGLANG is
  set, ``import mooncake.engine`` (``mooncake_finder``).
- vLLM calls ``vllm_backend`` (entry point vllm.general_plugins): with MEMSPAN_VLLM_BACKEND=1 it gives vLLM's groups of
  the CPU to memspan.
"""

import os


def register():
    """Makes the name known to torch.distributed, unless it is."""
    if os.environ.get("MEMSPAN_SGLANG"):
        from memspan_autoload import mooncake_finder

        mooncake_finder.install_if_wanted()
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


def vllm_backend():
    """ValueError for another value of MEMSPAN_VLLM_BACKEND than 0 and 1."""
    wanted = os.environ.get("MEMSPAN_VLLM_BACKEND", "")
    if wanted not in ("", "0", "1"):
        raise ValueError(f'MEMSPAN_VLLM_BACKEND is "{wanted}", allowed are 0 and 1')
    if wanted == "1":
        from memspan.connectors import vllm_backend as backend

        backend.register()


def _create(options, backend_options):
    from memspan.torch import process_group

    return process_group.create(options, backend_options)


def _create_alone(store, rank, world_size, timeout, device, **options):
    from memspan.torch import process_group

    return process_group.create_alone(store, rank, world_size, timeout, device, **options)
