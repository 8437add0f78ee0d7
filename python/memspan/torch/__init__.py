# SPDX-License-Identifier: Apache-2.0
"""memspan for PyTorch (2.13 is the tested version): symmetric tensors of the CPU, and of a GPU.

    from memspan.torch import symmetric_memory
    mine = symmetric_memory.empty((1024,), torch.float32)
    symmetric_memory.shmem_put(mine, 0, source, 0, 1024, target_rank=1)
    symmetric_memory.barrier()

Rank and world size are those of torch.distributed, else of the launcher (RANK, WORLD_SIZE). The heap
has SYMMETRIC_MEMORY_HEAP_SIZE bytes (1 GiB); SHMEM_IP_PORT says where rank 0 hosts the store
(tcp://127.0.0.1:8662).

With MEMSPAN_DEVICE=cuda ``empty(..., device="cuda")`` is memory of a GPU, and operations on it are work of
its current stream.

``load_classes()`` gives the classes of ``libaclshmem_torch.so``, torch.classes.SymmetricMemory,
which TorchScript can call; they are compiled where they are used (memspan.torch.native).
"""

import memspan_autoload
from memspan.torch.classes import load_classes
from memspan.torch.ddp import reduce_after_backward
from memspan.torch.handle import SymmetricMemory
from memspan.torch.handler import TorchSymmetricMemoryHandler

symmetric_memory = TorchSymmetricMemoryHandler
memspan_autoload.register()


def enable_symmetric_memory() -> None:
    """Lets torch.distributed._symmetric_memory be used on the CPU: memspan.torch.symm_mem."""
    from memspan.torch import symm_mem

    symm_mem.enable()


__all__ = [
    "SymmetricMemory",
    "TorchSymmetricMemoryHandler",
    "enable_symmetric_memory",
    "load_classes",
    "reduce_after_backward",
    "symmetric_memory",
]
