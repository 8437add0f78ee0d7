# SPDX-License-Identifier: Apache-2.0
"""In the place of torchvision, whose wheel needs CUDA, for modules that only import its names: any module of it is there,
and any name of these is a class that does nothing. Nothing of it is called in the tests."""

import importlib.abc
import importlib.machinery
import sys


class _Any(type):
    def __getattr__(cls, name):
        return attribute(name)


def attribute(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Any(name, (), {})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if not name.startswith("torchvision."):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def exec_module(self, module):
        module.__getattr__ = attribute


sys.meta_path.append(_Finder())
__getattr__ = attribute
__version__ = "0.0"
