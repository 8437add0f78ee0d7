# SPDX-License-Identifier: Apache-2.0
"""With this folder on PYTHONPATH every interpreter calls raise_on_error(True) as soon as it has the library."""

import importlib.abc
import importlib.util
import sys

LIBRARY = "memspan._core"


class Raising(importlib.abc.Loader):
    def __init__(self, loader):
        self.loader = loader

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        self.loader.exec_module(module)
        module.raise_on_error(True)


class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != LIBRARY:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None:
            spec.loader = Raising(spec.loader)
        return spec


sys.meta_path.insert(0, Finder())
