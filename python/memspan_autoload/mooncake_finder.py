# SPDX-License-Identifier: Apache-2.0
"""``import mooncake.engine`` gives ``memspan.mooncake``, in every process that imports torch, if
MEMSPAN_SGLANG is set.

| MEMSPAN_SGLANG | |
|---|---|
| not set, 0 | nothing |
| 1 | memspan, unless a package mooncake is installed: RuntimeError at its import then, which names it |
| replace | memspan, whether or not one is installed |

An engine's processes inherit the variable and import torch, and so have the finder, however they were started.
Nothing of memspan is loaded before ``mooncake.engine`` is imported. memspan has no other module of Mooncake's.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys

VARIABLE = "MEMSPAN_SGLANG"
REPLACE = "replace"
_ALLOWED = ("", "0", "1", REPLACE)
_PACKAGE, _ENGINE = "mooncake", "mooncake.engine"


class MooncakeFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the package and its module ``engine``. RuntimeError for a package of others, unless it
    is to be replaced, and ModuleNotFoundError for Mooncake's other modules. Thread-safe, as the
    import system holds the modules' locks."""

    def __init__(self, replaces):
        self.replaces = replaces

    def find_spec(self, name, path=None, target=None):
        """The interface of importlib."""
        if name == _PACKAGE:
            self._check_others()
            return importlib.machinery.ModuleSpec(name, self, origin="memspan", is_package=True)
        if name == _ENGINE:
            return importlib.machinery.ModuleSpec(name, self, origin="memspan.mooncake")
        if name.startswith(f"{_PACKAGE}."):
            raise ModuleNotFoundError(
                f"{name}: memspan is in Mooncake's place ({VARIABLE}), and has {_ENGINE} only", name=name
            )
        return None

    def exec_module(self, module):
        """The interface of importlib."""
        if module.__name__ == _PACKAGE:
            module.memspan = True
        else:  # what is in sys.modules at the end is what the import gives
            sys.modules[_ENGINE] = importlib.import_module("memspan.mooncake")

    def _check_others(self):
        if self.replaces:
            return
        spec = importlib.machinery.PathFinder.find_spec(_PACKAGE)
        if spec is not None and spec.origin is not None:
            raise RuntimeError(
                f"{VARIABLE} is 1, and Mooncake's own package is installed: {spec.origin}. Uninstall it, or set "
                f"{VARIABLE} to {REPLACE}, or do not set it"
            )


def install_if_wanted():
    """As MEMSPAN_SGLANG says. ValueError for a value that is not allowed; else as ``install``."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in _ALLOWED:
        raise ValueError(f'{VARIABLE} is "{wanted}", allowed are {", ".join(filter(None, _ALLOWED))}')
    if wanted in ("1", REPLACE):
        install(wanted == REPLACE)


def install(replaces):
    """Puts the finder before all others, once in a process. RuntimeError when mooncake is imported already."""
    known = sys.modules.get(_PACKAGE)
    if known is not None and not hasattr(known, "memspan"):
        raise RuntimeError(
            f"mooncake is imported already ({getattr(known, '__file__', None)}); memspan comes before that"
        )
    for finder in sys.meta_path:
        if isinstance(finder, MooncakeFinder):
            finder.replaces = finder.replaces or replaces
            return
    sys.meta_path.insert(0, MooncakeFinder(replaces))
