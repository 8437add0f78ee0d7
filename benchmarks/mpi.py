# SPDX-License-Identifier: Apache-2.0
"""An MPI to compare with: how programs are compiled for it and started by it.

It is a folder in which Open MPI, MPICH or Intel MPI is installed, as `install_rivals.sh` does, or the name of its
compiler command, such as ``mpicxx.mpich`` or ``mpicxx.openmpi``, beside which is its ``mpiexec``.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path


class Absent(Exception):
    """There is no such MPI, or it does not compile the program."""


@dataclass(frozen=True)
class Mpi:
    name: str
    version: str
    compilers: dict[str, str]  # of C and C++
    launcher: tuple[str, ...]
    environment: dict[str, str]

    def __str__(self):
        return f"{self.name} {self.version}"

    def compile(self, sources, program, *flags):
        """With -O2 and without the MPI's old C++ interface."""
        language = "C++" if Path(sources[0]).suffix == ".cc" else "C"
        command = [self.compilers[language], "-O2", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", "-o", program, *sources, *flags]
        done = subprocess.run(list(map(str, command)), env={**os.environ, **self.environment}, check=False)
        if done.returncode:
            raise Absent(f"{Path(command[0]).name} of {self} failed with exit code {done.returncode}")


def find(text):
    """The MPI that `text` names, a folder or a compiler command."""
    compiler = shutil.which(str(Path(text).resolve() / "bin/mpicxx") if os.path.isdir(text) else text)
    launcher = compiler and shutil.which(_beside(compiler, "mpiexec"))
    if not launcher or launcher == compiler:
        raise Absent(f"{text} has no mpicxx with an mpiexec beside it (install_rivals.sh)")
    environment, options = {}, []
    printed = subprocess.run([launcher, "--version"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False).stdout
    if "Open MPI" in printed or "open-mpi" in printed:
        name = "Open MPI"
        # It refuses root, more processes than cores, and binds before the program can.
        environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        options = ["--oversubscribe", "--bind-to", "none"]
    elif "Intel" in printed:
        name = "Intel MPI"
        environment = {"I_MPI_ROOT": str(Path(launcher).parents[1])}
    else:
        name = "MPICH"
    found = re.search(r"\d+(\.\d+)+", printed)
    compilers = {"C": _beside(compiler, "mpicc"), "C++": compiler}
    return Mpi(name, found.group() if found else "unknown", compilers, (launcher, *options), environment)


def _beside(compiler, name):
    """Debian's names have the MPI's name at the end."""
    path = Path(compiler)
    return str(path.with_name(path.name.replace("mpicxx", name)))
