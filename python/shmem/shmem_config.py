# SPDX-License-Identifier: Apache-2.0
"""``shmem-config``, or ``python -m shmem.shmem_config``: where the headers and libraries of SHMEM lie,
for build files, and whether they are whole. Each question prints one line; the exit code is 0, 1 when a
check found something, 2 for a wrong option."""

import argparse
import glob
import json
import os
import platform
import subprocess
import sys
from typing import List, NamedTuple, Optional, Sequence

from memspan import __version__, get_include_path, get_lib_path
from shmem import _soc

__all__ = ["main"]

_HEADERS = [os.path.join("aclshmem", "shmem.h"), "aclshmem.h", "shmem_api.h", os.path.join("memspan", "kernel.h")]
_LIBRARIES = ["libshmem.so", "libmemspan.so"]
_LOAD_SECONDS = 30


class _Tree(NamedTuple):
    """The installed files of a prefix."""

    root: str
    headers: str  # what `-I` needs for <shmem.h> of CANN SHMEM is a folder of it
    libraries: str

    @property
    def include(self) -> str:
        return os.path.join(self.headers, "aclshmem")


def _own() -> _Tree:
    return _Tree(os.path.dirname(get_include_path()), get_include_path(), get_lib_path())


def _at(folder: str) -> _Tree:
    """The files of a folder with include/ and lib/, lib64/ or lib/ARCHITECTURE/."""
    root = os.path.abspath(folder)
    places = [os.path.join(root, "lib64"), *sorted(glob.glob(os.path.join(root, "lib", "*-linux-gnu")))]
    found = [place for place in places if os.path.exists(os.path.join(place, _LIBRARIES[0]))]
    return _Tree(root, os.path.join(root, "include"), found[0] if found else os.path.join(root, "lib"))


def _load(library: str) -> Optional[str]:
    """Why the library is not usable, looked at in a process of its own; None when it is."""
    program = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).aclshmemx_init_attr"
    try:
        ran = subprocess.run(
            [sys.executable, "-c", program, library], capture_output=True, text=True, timeout=_LOAD_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"{library} was not loaded within {_LOAD_SECONDS} s"
    return None if ran.returncode == 0 else f"{library} does not load: {ran.stderr.strip().splitlines()[-1]}"


def _problems(tree: _Tree) -> List[str]:
    files = [os.path.join(tree.headers, name) for name in _HEADERS]
    files += [os.path.join(tree.libraries, name) for name in _LIBRARIES]
    problems = [f"{file} is missing" for file in files if not os.path.exists(file)]
    library = os.path.join(tree.libraries, _LIBRARIES[0])
    unusable = _load(library) if os.path.exists(library) else None
    return problems + ([unusable] if unusable else [])


def _diagnose(tree: _Tree) -> str:
    return json.dumps(
        {
            "version": __version__,
            "root": tree.root,
            "include": tree.include,
            "lib": tree.libraries,
            "backend": _soc.select_backend(),
            "machine": _soc.detect_soc(),
            "python": f"{platform.python_version()} ({sys.executable})",
            "problems": _problems(tree),
        },
        indent=2,
    )


def _check(tree: _Tree) -> int:
    problems = _problems(tree)
    for problem in problems:
        print(f"shmem-config: {problem}", file=sys.stderr)
    if not problems:
        print(f"{tree.root} is whole")
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("shmem-config", description=__doc__)
    asked = parser.add_mutually_exclusive_group(required=True)
    for option, help_ in [
        ("include", "the folder for -I, in which <shmem.h> is CANN SHMEM's"),
        ("lib", "the folder of the libraries"),
        ("ldflags", "what the linker needs: in a wheel libshmem.so is for programs that load it by name"),
        ("rpath", "what the linker needs so that the program finds the libraries"),
        ("backend", "what kernels run on"),
        ("root", "the folder that has all of it"),
        ("runtime-root", "the same: nothing else is loaded at run time"),
        ("version", "memspan's version"),
        ("diagnose", "all of it and what is wrong, as JSON"),
        ("check", "whether it is complete: all files exist, and the library loads"),
    ]:
        asked.add_argument(f"--{option}", action="store_const", const=option, dest="asked", help=help_)
    parser.add_argument("--package", metavar="DIR", help="with --check: look at this folder instead")
    return parser


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Answers the question that the arguments ask (the command line's when None)."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.package is not None and given.asked != "check":
        parser.error("--package needs --check")
    if given.package is not None and not os.path.isdir(given.package):
        parser.error(f'--package is "{given.package}", which is not a folder')
    tree = _own() if given.package is None else _at(given.package)
    if given.asked == "check":
        return _check(tree)
    answers = {
        "include": lambda: tree.include,
        "lib": lambda: tree.libraries,
        "ldflags": lambda: f"-L{tree.libraries} -lmemspan",
        "rpath": lambda: f"-Wl,-rpath,{tree.libraries}",
        "backend": _soc.select_backend,
        "root": lambda: tree.root,
        "runtime-root": lambda: tree.root,
        "version": lambda: __version__,
        "diagnose": lambda: _diagnose(tree),
    }
    print(answers[given.asked]())
    return 0


if __name__ == "__main__":
    sys.exit(main())
