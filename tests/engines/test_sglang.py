# SPDX-License-Identifier: Apache-2.0
"""SGLang's own modules over memspan, in processes that its launcher's way of starting them spawns.

SGLang is its package without what needs a GPU: ``pip install --no-deps sglang==0.5.23 orjson IPython traitlets gguf`` into the
environment, or the folders of these in MEMSPAN_SGLANG_PATH. torchvision is a stub where it is not installed (stubs/)."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest
from support import server

HERE = pathlib.Path(__file__).resolve().parent
FOLDERS = [folder for folder in os.environ.get("MEMSPAN_SGLANG_PATH", "").split(os.pathsep) if folder]

if not FOLDERS and importlib.util.find_spec("sglang") is None:
    pytest.skip("does not apply: SGLang is not installed, and MEMSPAN_SGLANG_PATH names no folder", allow_module_level=True)


def run(words, **environment):
    """What a program prints, whose processes find SGLang."""
    folders = list(FOLDERS)
    if importlib.util.find_spec("torchvision") is None:
        folders.append(str(HERE / "stubs"))
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders), **environment},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def sides(kind, **environment):
    store = f"tcp://127.0.0.1:{server.free_port()}"
    output = run(
        [str(HERE / "support" / "sglang_sides.py"), kind],
        MEMSPAN_STORE=store,
        ASCEND_MF_STORE_URL=store,
        **environment,
    )
    return json.loads(output.splitlines()[-1])


def test_mooncakes_class_moves_bytes_between_spawned_processes():
    said = sides("mooncake", MEMSPAN_SGLANG="1")
    assert said["class"] == "MooncakeTransferEngine" and said["engine"] == "memspan.mooncake"
    assert said["wrote"] == 0 and said["refused"] < 0 and said["right"]
    assert not said["loaded_here"]  # the launcher itself needs nothing


def test_ascends_class_moves_bytes_between_spawned_processes():
    said = sides("ascend")
    assert said["class"] == "AscendTransferEngine" and said["engine"] == "memspan.fabric.engine"
    assert said["wrote"] == 0 and said["refused"] < 0 and said["right"]


MODULES = [
    "sglang.srt.disaggregation.mooncake.conn",
    "sglang.srt.disaggregation.ascend.conn",
    "sglang.srt.mem_cache.pool_host.npu_memfabric",
]


def test_its_modules_import_and_hicache_hears_why_not():
    program = f"""
import importlib
for name in {MODULES}: importlib.import_module(name)
from sglang.srt.mem_cache.pool_host import npu_memfabric
try:
    npu_memfabric.ensure_memfabric_capacity(1 << 30, 0)
except RuntimeError as error:
    print("refused:", error)
"""
    output = run(["-c", program], MEMSPAN_SGLANG="1", SGLANG_HICACHE_HOST_MEM_BACKEND="memfabric")
    assert "refused: NOT_SUPPORTED: memfabric_hybrid.offload.initialize" in output


def test_a_wrong_value_stops_at_the_import_of_torch():
    done = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={**os.environ, "MEMSPAN_SGLANG": "yes"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0 and 'MEMSPAN_SGLANG is "yes", allowed are 0, 1, replace' in done.stderr
