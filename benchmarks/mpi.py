# SPDX-License-Identifier: Apache-2.0
"""An MPI to compare with: how programs are compiled for it and started by it.

Two kinds are known: a folder in which PyPI's ``impi-rt`` and ``impi-devel`` (Intel MPI) are installed, as
`install_rivals.sh` does, and the name of a compiler command, such as ``mpicxx.mpich`` or ``mpicxx.openmpi``,
beside which is the ``mpiexec`` of the same kind.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class Absent(Exception):
    """There is no such MPI."""


@dataclass(frozen=True)
class Mpi:
    name: str
    version: str
    compilers: dict[str, str]  # of C and C++
    flags: tuple[str, ...]
    launcher: tuple[str, ...]
    environment: dict[str, str]

    def compile(self, sources, program, *flags):
        """With -O2, and these flags before the MPI's own. A compiler that fails raises."""
        language = "C++" if Path(sources[0]).suffix == ".cc" else "C"
        command = [self.compilers[language], "-O2", "-o", program, *sources, *flags, *self.flags]
        subprocess.run(list(map(str, command)), check=True)


def find(text):
    """The MPI that `text` names, a folder or a compiler command."""
    if os.path.isdir(text):
        return _intel(Path(text).resolve())
    return _wrapped(text)


def _intel(folder):
    launcher = folder / "bin/mpiexec.hydra"
    if not launcher.exists() or not (folder / "include/mpi.h").exists():
        raise Absent(f"{folder} has no Intel MPI: impi-rt and impi-devel of PyPI (install_rivals.sh)")
    library = folder / "lib"
    environment = {
        "I_MPI_ROOT": str(folder),
        "LD_LIBRARY_PATH": str(library),
        "FI_PROVIDER_PATH": str(library),
    }
    flags = ("-isystem", str(folder / "include"), f"-L{library}", f"-Wl,-rpath,{library}", "-lmpi")
    found = re.search(r"Version (\S+)", _output([str(launcher), "--version"], environment))
    version = found.group(1) if found else "unknown"
    compilers = {"C": os.environ.get("CC", "cc"), "C++": os.environ.get("CXX", "c++")}
    return Mpi("Intel MPI", version, compilers, flags, (str(launcher),), environment)


def _wrapped(command):
    launcher = command.replace("mpicxx", "mpiexec")
    for needed in (command, launcher):
        if not shutil.which(needed) or launcher == command:
            raise Absent(f"{command} is neither a folder nor an mpicxx with an mpiexec beside it")
    environment, options = {}, [launcher]
    said = _output([launcher, "--version"], {})
    if "Open MPI" in said or "open-mpi" in said:
        name = "Open MPI"
        # It refuses root, more processes than cores, and binds before the program can.
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        options += ["--oversubscribe", "--bind-to", "none"]
    else:
        name = "MPICH"
    found = re.search(r"\d+(\.\d+)+", said)
    compilers = {"C": command.replace("mpicxx", "mpicc"), "C++": command}
    flags = ("-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX")  # their old C++ interface
    version = found.group() if found else "unknown"
    return Mpi(name, version, compilers, flags, tuple(options), environment)


def _output(command, environment):
    done = subprocess.run(command, env={**os.environ, **environment}, text=True, capture_output=True, check=False)
    return done.stdout + done.stderr
