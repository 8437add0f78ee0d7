# SPDX-License-Identifier: Apache-2.0
"""torch.classes.SymmetricMemory: symmetric tensors and operations on them for TorchScript and for
programs that call the compiled classes, Manager and Ops."""

from typing import Any

import torch
from memspan.errors import Error
from memspan.torch import native


def load_classes() -> Any:
    """torch.classes.SymmetricMemory; its library is compiled if need be, Error when it cannot be."""
    try:
        torch.classes.SymmetricMemory.Manager  # a program may have loaded the library
    except RuntimeError:
        path = native.library("aclshmem_torch")
        if path is None:
            raise Error(f"no compiled classes: {native.why_not('aclshmem_torch')}") from None
        torch.classes.load_library(path)
    return torch.classes.SymmetricMemory
