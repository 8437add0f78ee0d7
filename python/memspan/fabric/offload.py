# SPDX-License-Identifier: Apache-2.0
"""MemFabric's host memory for an NPU's caches (``memfabric_hybrid.offload``): the names, and why memspan has nothing
behind them.

SGLang uses them only on an NPU, with SGLANG_HICACHE_HOST_MEM_BACKEND=memfabric: host memory that is
mapped into the NPU's addresses, and a kernel of the NPU that copies pages of a cache between the
two by tables of indices. memspan drives no NPU, so every call raises ``memspan.errors.Error`` that
begins with NOT_SUPPORTED. Without the variable HiCache keeps its pages in memory that PyTorch pins;
nothing of this is needed then.
"""

import dataclasses
import enum
from typing import Any, NoReturn

from memspan.errors import Error

OFFLOAD_FLAG_GIANT_PAGE = 1

__all__ = [
    "OFFLOAD_FLAG_GIANT_PAGE",
    "OffloadConfig",
    "Scene",
    "empty",
    "get_dva",
    "initialize",
    "kv_exchange_copy",
    "sparse_copy",
]


class Scene(enum.IntEnum):
    """Whose memory the pool is."""

    LOCAL = 0


@dataclasses.dataclass
class OffloadConfig:
    """A pool of ``reserve_size`` bytes of the host for the NPU ``device_id``, of which ``alloc_size`` at once."""

    device_id: int = 0
    reserve_size: int = 0
    alloc_size: int = 0
    flags: int = 0
    scene: Scene = Scene.LOCAL


def _refuse(call: str) -> NoReturn:
    raise Error(
        f"NOT_SUPPORTED: memfabric_hybrid.offload.{call} maps memory of the host into an NPU or runs a kernel there, and "
        "memspan drives no NPU; do not set SGLANG_HICACHE_HOST_MEM_BACKEND"
    )


def initialize(config: OffloadConfig) -> int:
    """Raises Error: NOT_SUPPORTED."""
    _refuse("initialize")


def empty(size: Any, *, dtype: Any = None) -> NoReturn:
    """Raises Error: NOT_SUPPORTED."""
    _refuse("empty")


def get_dva(address: int) -> int:
    """Raises Error: NOT_SUPPORTED."""
    _refuse("get_dva")


def kv_exchange_copy(meta: Any, device: Any = None) -> int:
    """Raises Error: NOT_SUPPORTED."""
    _refuse("kv_exchange_copy")


def sparse_copy(*arguments: Any, **options: Any) -> int:
    """Raises Error: NOT_SUPPORTED."""
    _refuse("sparse_copy")
