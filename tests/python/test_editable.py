# SPDX-License-Identifier: Apache-2.0
"""`pip install -e .`: programs, paths and libraries are those that were built for it."""

import os
import re
import subprocess
import sys
import venv

import jobs
import pytest

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TOOLS = os.path.join(ROOT, "build", "python-env")
LOOK = r"""
import os, sys, memspan, shmem
from memspan import programs
assert programs.__file__.startswith(sys.argv[1]), programs.__file__
for folder in (memspan.get_include_path(), memspan.get_lib_path()):
    assert os.path.isdir(folder), folder
assert os.path.exists(os.path.join(memspan.get_include_path(), "shmem.h"))
assert os.path.exists(os.path.join(memspan.get_lib_path(), "libmemspan.so.0"))
shmem.shmem_init()
sys.stdout.write(f"PE {shmem.get_my_pe()}\n")
shmem.shmem_finalize()
"""


def run(command, limit_s=jobs.LIMIT_S, **environment):
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit_s,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def type_of_build():
    """That of the wheel, whose objects are there."""
    with open(os.path.join(ROOT, "build", "wheel", "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(r"^CMAKE_BUILD_TYPE:\w+=(\w+)$", cache.read(), flags=re.M).group(1)


@pytest.mark.skipif(not os.path.isdir(TOOLS), reason="does not apply: scripts/build_wheel.sh has not run")
def test_an_editable_installation(tmp_path):
    venv.create(tmp_path, with_pip=True)
    python = str(tmp_path / "bin" / "python")
    tools = run([os.path.join(TOOLS, "bin", "python"), "-c", "import nanobind; print(nanobind.__path__[0])"])
    run(
        [python, "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps"]
        + ["--config-settings", f"cmake.build-type={type_of_build()}", "-e", ROOT],
        limit_s=900,
        PYTHONPATH=os.path.dirname(tools.strip()),
    )
    program = tmp_path / "look.py"
    program.write_text(LOOK)
    oshrun = str(tmp_path / "bin" / "oshrun")
    out = run([oshrun, "-n", "2", python, str(program), os.path.join(ROOT, "python")])
    assert sorted(out.split()) == ["0", "1", "PE", "PE"], out
    assert "version" in run([str(tmp_path / "bin" / "memspan-info")])


def test_another_library_on_the_path(tmp_path):
    """set_env.sh of another installation leaves LD_LIBRARY_PATH: the extension has its own library."""
    for name in ("libmemspan.so.0", "libshmem.so", "libmf_smem.so"):
        (tmp_path / name).write_bytes(b"no library")
    maps = 'open("/proc/self/maps")'
    look = f'import memspan; print([m.split(maxsplit=5)[-1].strip() for m in {maps} if "libmemspan.so" in m][0])'
    path = run([sys.executable, "-c", look], LD_LIBRARY_PATH=str(tmp_path)).strip()
    lib = run([sys.executable, "-c", "import memspan; print(memspan.get_lib_path())"]).strip()
    assert os.path.dirname(path) == os.path.realpath(lib)
    load = "import ctypes, memspan; ctypes.CDLL(memspan.get_lib_path() + '/libmf_smem.so').smem_init"
    run([sys.executable, "-c", load], LD_LIBRARY_PATH=str(tmp_path))
