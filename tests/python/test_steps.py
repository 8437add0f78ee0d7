# SPDX-License-Identifier: Apache-2.0
"""The steps that SHMEM's documents tell: a wheel of the name `shmem`, and its first test."""

import importlib.util
import os
import pathlib
import subprocess
import sys
import zipfile

import jobs
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEST = ROOT / "src" / "python" / "test.py"
SUCCESS = "test.py running success!\n"


def run_by_hand(rank, ranks):
    import runpy

    runpy.run_path(str(TEST), run_name="__main__")


def test_the_first_test_by_hand():
    assert jobs.run(run_by_hand, 2) == [SUCCESS, ""]


def test_the_first_test_under_torchrun():
    pytest.importorskip("torch", reason="needs=torch")
    torchrun = os.path.join(os.path.dirname(sys.executable), "torchrun")
    done = subprocess.run(
        [torchrun, "--nproc-per-node=2", f"--master-port={jobs.free_port()}", str(TEST)],
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
    )
    assert (done.returncode, done.stdout) == (0, SUCCESS), done.stderr


def load_setup():
    spec = importlib.util.spec_from_file_location("setup", ROOT / "src" / "python" / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_wheel_of_the_other_name(tmp_path):
    """The wheel that is installed here, taken apart and put together under the other name."""
    source = tmp_path / "memspan-1.0-py3-none-any.whl"
    with zipfile.ZipFile(source, "w") as wheel:
        wheel.writestr("shmem/__init__.py", "works = True\n")
        wheel.writestr(
            "memspan-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: memspan\nVersion: 1.0\n"
        )
        wheel.writestr(
            "memspan-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr("memspan-1.0.dist-info/RECORD", "")
    made = load_setup().rename(source, tmp_path / "dist")
    assert made.name == "shmem-1.0-py3-none-any.whl"
    target = tmp_path / "installed"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", target, made],
        check=True,
    )
    assert (target / "shmem" / "__init__.py").read_text() == "works = True\n"
    assert "Name: shmem" in (target / "shmem-1.0.dist-info" / "METADATA").read_text()
