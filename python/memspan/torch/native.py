# SPDX-License-Identifier: Apache-2.0
"""The pieces that need PyTorch's headers, compiled at their first use: PyTorch has no stable
interface for it.

Each piece is a file of ``csrc`` and becomes one shared library. It is kept in a folder whose name
says for which PyTorch, Python, sources and memspan it is, beside its checksum:

    $MEMSPAN_TORCH_BUILD_DIR, or memspan in $XDG_CACHE_HOME or ~/.cache; memspan-UID in $TMPDIR or
    /tmp for users who cannot write there
      torch-2.13.0+cpu-cpython-311-x86_64-linux-gnu-0123456789abcdef
        libaclshmem_torch.so, libaclshmem_torch.so.sha256, libaclshmem_torch.so.lock

so that an old or damaged one is compiled again. The first process that needs one compiles it, and
prints a line if that takes longer than 3 s; the others wait. The compiler is that of $CXX, else
c++, g++ or clang++. MEMSPAN_TORCH_BUILD_DIR=none compiles and loads nothing, and ``python -m
memspan.torch.build`` compiles ahead of time.
"""

import contextlib
import dataclasses
import fcntl
import glob
import hashlib
import importlib.util
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

import memspan
import torch
from memspan.remedy import remedy

_CSRC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "csrc")
_TORCH = os.path.dirname(os.path.abspath(torch.__file__))
_LIBMEMSPAN = os.path.join(memspan.get_lib_path(), "libmemspan.so.0")
_COMPILE_S = 600
_LOCK_S = _COMPILE_S + 60
_LOOK_S = 0.05
_SILENT_S = 3
_FIRST_ERRORS = 5
_LAST_LINES = 20


class CannotBuild(Exception):
    """The text says why."""


@dataclasses.dataclass(frozen=True)
class Piece:
    """``source`` becomes ``file``; an extension is the module ``memspan.torch._<name>``."""

    source: str
    file: str
    is_extension: bool


def _library(name):
    return Piece(os.path.join(_CSRC, f"{name}.cc"), f"lib{name}.so", False)


def _extension(name):
    return Piece(os.path.join(_CSRC, f"{name}.cc"), f"_{name}.so", True)


PIECES = {
    "aclshmem_torch": _library("aclshmem_torch"),
    "process_group": _extension("process_group"),
    "symmetric_memory": _extension("symmetric_memory"),
}

_mutex = threading.RLock()
_made = {}  # what load() and library() gave, by name; asked for once
_reasons = {}


def load(name):
    """The extension ``memspan.torch._<name>``, or None: why_not() says why."""
    return _once(name, True, _import)


def library(name):
    """The path of a shared library, or None: why_not() says why."""
    return _once(name, False, build)


def why_not(name):
    """Why the last load() or library() gave None; None when it did not."""
    _piece(name)
    return _reasons.get(name)


def build(name, base=None):
    """The path of the piece, which is compiled if it does not exist. CannotBuild when that fails.
    base: the folder of folders, which others may read then; else as the environment says."""
    piece = _piece(name)
    try:
        folder = os.path.join(base or _base(), _folder_name())
        path = os.path.join(folder, piece.file)
        if os.path.lexists(folder):
            _check_folder(folder)
        if not _is_whole(path):
            _check_headers(piece)
            compiler = _compiler()
            _make_folder(folder, 0o700 if base is None else 0o755)
            _compile_once(name, piece, path, compiler)
    except OSError as error:
        raise CannotBuild(
            f"{error.filename or name}: {error.strerror} (MEMSPAN_TORCH_BUILD_DIR names the folder)"
        ) from error
    return path


def _piece(name):
    if name not in PIECES:
        raise ValueError(f'there is no piece "{name}", allowed are {", ".join(PIECES)}')
    return PIECES[name]


def _once(name, is_extension, make):
    if _piece(name).is_extension != is_extension:
        raise ValueError(f"{name} is {'no' if is_extension else 'an'} extension of Python")
    with _mutex:
        if name not in _made:
            try:
                _made[name] = make(name)
            except CannotBuild as reason:
                _made[name] = None
                _reasons[name] = str(reason)
        return _made[name]


def _import(name):
    full = f"memspan.torch._{name}"
    spec = importlib.util.spec_from_file_location(full, build(name))
    try:
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except ImportError as error:
        raise CannotBuild(f"{spec.origin} was compiled but cannot be loaded: {error}") from error
    sys.modules[full] = module
    return module


# ---- where it lies


def _base():
    chosen = os.environ.get("MEMSPAN_TORCH_BUILD_DIR")
    if chosen == "none":
        raise CannotBuild('MEMSPAN_TORCH_BUILD_DIR is "none"')
    if chosen:
        return os.path.abspath(chosen)
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.expanduser("~/.cache")  # unchanged if the user has no home
    if os.path.isabs(cache) and _can_be_made(cache):
        return os.path.join(cache, "memspan")
    return os.path.join(tempfile.gettempdir(), f"memspan-{os.geteuid()}")


def _can_be_made(folder):
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    return os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK)


def _folder_name():
    identity = hashlib.sha256()
    for path in sorted(glob.glob(os.path.join(_CSRC, "*.[ch]*"))):
        with open(path, "rb") as file:
            identity.update(os.path.basename(path).encode() + b"\0" + file.read() + b"\0")
    status = os.stat(_LIBMEMSPAN)
    about = (os.path.realpath(_LIBMEMSPAN), status.st_size, status.st_mtime_ns)
    about += (compile_flags(), torch.version.git_version, memspan.__version__)
    identity.update(repr(about).encode())
    abi = sysconfig.get_config_var("SOABI")
    return f"torch-{torch.__version__}-{abi}-{identity.hexdigest()[:16]}"


def _make_folder(folder, mode):
    os.makedirs(os.path.dirname(folder), mode=mode, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, mode)
    _check_folder(folder)


def _check_folder(folder):
    """Checks that only this user and root can write to the folder, whose files will be run, and to
    the one above it where others may have made that."""
    above = os.path.dirname(folder)
    if os.stat(os.path.dirname(above)).st_mode & stat.S_IWOTH:
        _check_owner(above)
    _check_owner(folder)


def _check_owner(folder):
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise CannotBuild(f"{folder} is not a folder")
    if status.st_uid not in (os.geteuid(), 0):
        raise CannotBuild(f"{folder} belongs to user {status.st_uid}, not to this one")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise CannotBuild(f"{folder} can be written to by others")


def _is_whole(path):
    """Whether it exists and is the file that the compiler wrote."""
    try:
        with open(path, "rb") as file, open(f"{path}.sha256", encoding="ascii") as checksum:
            return hashlib.sha256(file.read()).hexdigest() == checksum.read()
    except (FileNotFoundError, UnicodeDecodeError):
        return False


# ---- compiling


def compile_flags():
    """Digest of all pieces, for the folder's name."""
    include = os.path.join(_TORCH, "include")
    flags = ["-std=c++20", "-O2", "-fPIC", "-shared", "-fvisibility=hidden"]
    flags.append(f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}")
    # Older PyTorch has classes of Python that only modules with the same marks may share.
    for mark in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{mark}", None)
        if value is not None:
            flags.append(f'-DPYBIND11_{mark}="{value}"')
    places = [include, os.path.join(include, "torch", "csrc", "api", "include")]
    places += [sysconfig.get_path("include"), memspan.get_include_path()]
    for place in places:
        flags += ["-isystem", place]
    return flags


def _links(piece):
    libraries = os.path.join(_TORCH, "lib")
    flags = [_LIBMEMSPAN, f"-Wl,-rpath,{os.path.dirname(_LIBMEMSPAN)}"]
    flags += [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltorch", "-ltorch_cpu", "-lc10"]
    return flags + ["-ltorch_python"] if piece.is_extension else flags


_NO_COMPILER = remedy(
    "no-compiler",
    "The C++ part of memspan.torch is compiled at its first use, and this machine has no compiler.",
    "Install g++; or run python -m memspan.torch.build --out FOLDER on a machine that has one, copy the folder, and set MEMSPAN_TORCH_BUILD_DIR=FOLDER.")


def _compiler():
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise CannotBuild(f'CXX is "{chosen[0]}", which is not a program')
        return chosen
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name) is not None:
            return [name]
    raise CannotBuild(
        f"no C++ compiler: PATH has no c++, g++ or clang++, and CXX is not set{_NO_COMPILER}"
    )


def _check_headers(piece):
    needed = [
        piece.source,
        _LIBMEMSPAN,
        os.path.join(memspan.get_include_path(), "memspan", "memspan.h"),
        os.path.join(_TORCH, "include", "torch", "library.h"),
    ]
    if piece.is_extension:
        needed.append(os.path.join(sysconfig.get_path("include"), "Python.h"))
    for path in needed:
        if not os.path.exists(path):
            raise CannotBuild(f"{path} does not exist")


def _run(command):
    """Ends the compiler and its children when it takes too long."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_COMPILE_S)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise CannotBuild(f"{command[0]} did not end within {_COMPILE_S} s") from error
        raise
    if process.returncode != 0:
        lines = output.splitlines()
        first = [line for line in lines[:-_LAST_LINES] if "error" in line][:_FIRST_ERRORS]
        said = "\n".join(first + lines[-_LAST_LINES:])
        raise CannotBuild(f"{shlex.join(command)} ended with {process.returncode}:\n{said}")


@contextlib.contextmanager
def _lock(path):
    """Held until the end of the block or of this process."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        end = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    raise CannotBuild(
                        f"another process has held {path} for {_LOCK_S} s"
                    ) from None
                time.sleep(_LOOK_S)  # flock has no time-out
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _telling(line):
    """Prints the line when the block takes long."""
    timer = threading.Timer(_SILENT_S, lambda: print(line, file=sys.stderr, flush=True))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _compile_once(name, piece, path, compiler):
    """Or waits for the process that does. One that waited for another's failure shares it."""
    notes = f"{path}.failed"
    before = _read(notes)
    with _lock(f"{path}.lock"):
        if _is_whole(path):
            return
        failure = _read(notes)
        if failure is not None and failure != before:
            raise CannotBuild(failure[1])
        try:
            _compile(name, piece, path, compiler)
        except CannotBuild as error:
            with open(notes, "w", encoding="utf-8") as file:
                file.write(str(error))
            raise
        with contextlib.suppress(FileNotFoundError):
            os.remove(notes)


def _read(path):
    """The file's time and text; None if no compiler is found."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return os.fstat(file.fileno()).st_mtime_ns, file.read()
    except FileNotFoundError:
        return None


def _compile(name, piece, path, compiler):
    for left in glob.glob(f"{glob.escape(path)}.part-*"):  # of a process that died
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(
        prefix=f"{piece.file}.part-", dir=os.path.dirname(path)
    ) as folder:
        made = os.path.join(folder, piece.file)
        marks = [f"-DTORCH_EXTENSION_NAME=_{name}"] if piece.is_extension else []
        with _telling(
            f"memspan: {compiler[0]} compiles {name} for PyTorch {torch.__version__} into "
            f"{os.path.dirname(path)}; this takes about half a minute, once (python -m "
            f"memspan.torch.build does it ahead of time)"
        ):
            _run([*compiler, *compile_flags(), *marks, piece.source, "-o", made, *_links(piece)])
        with open(made, "rb") as file:
            checksum = hashlib.sha256(file.read()).hexdigest()
        with open(f"{made}.sha256", "w", encoding="ascii") as file:
            file.write(checksum)
        os.replace(f"{made}.sha256", f"{path}.sha256")
        os.replace(made, path)
