# SPDX-License-Identifier: Apache-2.0
"""``python -m memspan`` prints which memspan this is, the paths of its parts, and what this machine
supports."""

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys

from memspan import __version__, get_include_path, get_lib_path
from memspan.programs import path_of

_PROGRAMS = ["oshrun", "memspan-info", "memspan-perf", "memspan-store", "memspan-kernels", "memspan-top", "memspan-explain"]


def _line(what: str, value: str) -> None:
    print(f"{what:<12} {value}")


def _version_of(package: str, without: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return f"not installed; {without}"


def _show_packages() -> None:
    _line("memspan", __version__)
    _line("python", f"{platform.python_version()} ({sys.executable})")
    _line("packages", os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    _line("headers", get_include_path())
    _line("libraries", get_lib_path())
    for program in _PROGRAMS:
        path = path_of(program)
        _line(program, path if os.path.exists(path) else f"missing: {path}")
    _line("numpy", _version_of("numpy", "shmem.tensor and other arrays need it"))
    _line("torch", _version_of("torch", "memspan.torch needs it"))


def main() -> int:
    """Prints it; the exit code is that of ``memspan-info``, whose lines come last."""
    parser = argparse.ArgumentParser(
        "python -m memspan", description="Says which memspan this is and what it finds here."
    )
    parser.add_argument("--version", action="version", version=f"memspan {__version__}")
    parser.parse_args()
    _show_packages()
    sys.stdout.flush()
    info = path_of("memspan-info")
    return subprocess.call([info]) if os.path.exists(info) else 1


if __name__ == "__main__":
    sys.exit(main())
