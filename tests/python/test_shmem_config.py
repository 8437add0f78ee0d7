# SPDX-License-Identifier: Apache-2.0
"""shmem-config answers what build files ask, and finds what is missing."""

import json
import os
import shutil
import subprocess
import sys

import memspan
import pytest
from shmem import shmem_config

SOURCE = """
#include <shmem.h>
#include <stdio.h>
int main(void) { printf("%d\\n", aclshmemx_init_status()); return 0; }
"""


def ask(*options):
    """The line it prints."""
    command = [sys.executable, "-m", "shmem.shmem_config", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.rstrip("\n")


def test_a_program_is_built_with_its_answers(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("does not apply: no C compiler")
    source, program = tmp_path / "program.c", str(tmp_path / "program")
    source.write_text(SOURCE)
    flags = [f"-I{ask('--include')}", *ask("--ldflags").split(), ask("--rpath")]
    subprocess.run(["cc", str(source), "-o", program, *flags], check=True)
    assert subprocess.run([program], capture_output=True, text=True, check=True).stdout == "0\n"


def test_it_says_what_this_is():
    assert ask("--version") == memspan.__version__
    assert ask("--backend") == "host"
    assert ask("--root") == ask("--runtime-root") == os.path.dirname(ask("--lib"))
    told = json.loads(ask("--diagnose"))
    assert told["problems"] == []
    assert (told["include"], told["lib"], told["backend"]) == (ask("--include"), ask("--lib"), "host")


def test_check_says_what_is_missing_and_what_does_not_load(tmp_path, capsys):
    assert shmem_config.main(["--check"]) == 0
    shutil.copytree(memspan.get_include_path(), tmp_path / "include")
    shutil.copytree(memspan.get_lib_path(), tmp_path / "lib")
    assert shmem_config.main(["--check", "--package", str(tmp_path)]) == 0
    os.unlink(tmp_path / "include" / "shmem_api.h")
    (tmp_path / "lib" / "libshmem.so").unlink()
    (tmp_path / "lib" / "libshmem.so").write_text("no library")
    capsys.readouterr()
    assert shmem_config.main(["--check", "--package", str(tmp_path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"shmem-config: {tmp_path}/include/shmem_api.h is missing"
    assert lines[1].startswith(f"shmem-config: {tmp_path}/lib/libshmem.so does not load: ")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--lib", "--package", "/"], "--package needs --check"),
        (["--check", "--package", "/nowhere"], '--package is "/nowhere", which is not a folder'),
        ([], "one of the arguments"),
    ],
)
def test_wrong_options_are_told(options, why, capsys):
    with pytest.raises(SystemExit) as ended:
        shmem_config.main(options)
    assert ended.value.code == 2
    assert why in capsys.readouterr().err
