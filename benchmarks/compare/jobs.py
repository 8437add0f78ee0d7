# SPDX-License-Identifier: Apache-2.0
"""The children of the comparison: how they are built, started, timed and ended.

A `Side` is one OpenSHMEM implementation: a compiler command, a launcher and an environment. Both
sides compile the same files with the same compiler and flags. No child outlives its time-out, and
what went wrong with it is part of its result, never an exception.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {
    "oshm_bench": sorted((HERE / "oshm_bench").glob("*.c")),
    "empty": [HERE / "empty.c"],
    "tenth": [HERE / "tenth.c"],
}
C_FLAGS = ["-std=gnu11", "-O2"]


class Unusable(Exception):
    """A side cannot be compared at all: not found, or it does not compile."""


@dataclass
class Outcome:
    """What a child printed and how it ended; `failure` is None when it ended well."""

    output: str
    seconds: float
    failure: str | None = None


@dataclass
class Side:
    name: str
    version: str
    compiler: list[str]
    launcher: list[str]
    environment: dict[str, str]
    link: list[str] = field(default_factory=list)
    crowded: list[str] = field(default_factory=list)  # options for more processes than cores
    programs: dict[str, Path] = field(default_factory=dict)

    def build(self, folder: Path) -> None:
        folder = folder / self.name
        folder.mkdir(parents=True, exist_ok=True)
        for program, sources in SOURCES.items():
            target = folder / program
            command = [*self.compiler, *C_FLAGS, "-o", target, *sources, *self.link]
            done = run(list(map(str, command)), self.environment, 120)
            if done.failure:
                raise Unusable(f"{self.name}: {program} does not compile\n{done.output}")
            self.programs[program] = target

    def start(self, processes: int, program: str, *arguments: str, heap: str, timeout: float) -> Outcome:
        environment = {**self.environment, "SHMEM_SYMMETRIC_SIZE": heap, "SHMEM_SYMMETRIC_HEAP_SIZE": heap}  # the second is OSHMEM's
        options = self.crowded if processes > cores() else []
        command = [*self.launcher, *options, "-n", str(processes), str(self.programs[program])]
        return run([*command, *arguments], environment, timeout)


def cores() -> int:
    return len(os.sched_getaffinity(0))


def run(command: list[str], environment: dict[str, str], timeout: float) -> Outcome:
    """Runs a child in a session of its own; ends it and its children at the time-out."""
    began = time.perf_counter()
    child = subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = child.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        return Outcome(end(child), timeout, f"no end within {timeout:.0f} s")
    except BaseException:
        end(child)
        raise
    return Outcome(output, time.perf_counter() - began, describe(child.returncode))


def end(child: subprocess.Popen) -> str:
    """A launcher takes its processes along when it is asked to end; the rest is killed."""
    output = ""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(child.pid, number)
        except ProcessLookupError:
            pass
        try:
            output, _ = child.communicate(timeout=5)
            break
        except subprocess.TimeoutExpired:
            continue
    return output


def describe(code: int) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"exit code {code}"


def memspan(build: Path | None, prefix: Path | None) -> Side:
    """The side under test: a build tree, or an installation."""
    if prefix:
        compiler, launcher = prefix / "bin/oshcc", prefix / "bin/oshrun"
        command, link = [str(compiler)], []
    else:
        repository, library = HERE.parent.parent, build / "lib"
        compiler, launcher = library / "libshmem.so", build / "bin/oshrun"
        include = repository / "include"
        command = [c_compiler(), f"-I{include / 'openshmem'}", f"-I{include}"]
        link = [f"-L{library}", "-lshmem", f"-Wl,-rpath,{library}"]
    for path in (compiler, launcher):
        if not path.exists():
            raise Unusable(f"memspan: {path} does not exist")
    environment = {"OSHCC_CC": c_compiler()}
    return Side("memspan", memspan_version(), command, [str(launcher)], environment, link)


def version_of(python: Path, package: str) -> str:
    """Of a package of an interpreter."""
    done = run([str(python), "-c", f"import importlib.metadata as m; print(m.version({package!r}))"], {}, 20)
    return done.output.strip() if not done.failure else "unknown"


def memspan_version() -> str:
    version = HERE.parent.parent / "VERSION"
    return version.read_text().strip() if version.exists() else "unknown"


def c_compiler() -> str:
    found = shutil.which(os.environ.get("CC", "gcc")) or shutil.which("cc")
    if not found:
        raise Unusable("no C compiler")
    return found


def oshmem() -> Side:
    """Debian's Open MPI. Its commands are asked who they are: PATH may name memspan's."""
    compiler = find_wrapper("oshcc")
    launcher = find_wrapper("oshrun")
    environment = {"OMPI_CC": c_compiler()}
    environment["OMPI_MCA_memory"] = "^patcher"  # without it, the end of a program may crash
    if os.geteuid() == 0:
        environment["OMPI_ALLOW_RUN_AS_ROOT"] = "1"
        environment["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1"
    said = run([compiler, "--showme:version"], {}, 20).output
    found = re.search(r"\d+(\.\d+)+", said)
    version = found.group() if found else "unknown"
    crowded = ["--oversubscribe"]
    return Side("OSHMEM", version, [compiler], [launcher], environment, crowded=crowded)


def find_wrapper(name: str) -> str:
    for path in (f"/usr/bin/{name}.openmpi", f"/usr/bin/{name}"):
        real = os.path.basename(os.path.realpath(path))
        if os.path.exists(path) and ("openmpi" in real or real in ("opal_wrapper", "orterun")):
            return path
    raise Unusable(f"OSHMEM: no {name} of Open MPI in /usr/bin (libopenmpi-dev, openmpi-bin)")


def build_limits(folder: Path) -> Path | None:
    """The machine's own limits; None where the program does not compile (it is for x86)."""
    compiler = shutil.which(os.environ.get("CXX", "g++")) or "c++"
    folder.mkdir(parents=True, exist_ok=True)
    sources = sorted(map(str, (HERE / "limits").glob("*.cc")))
    command = [compiler, "-std=c++20", "-O2", "-pthread", "-o", str(folder / "limits"), *sources]
    return None if run(command, {}, 120).failure else folder / "limits"
