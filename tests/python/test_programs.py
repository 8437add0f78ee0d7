# SPDX-License-Identifier: Apache-2.0
"""The wheel's programs, each by the name that pip gives it."""

import json
import os
import subprocess
import sys

import memspan
from memspan.kv_pool import KvPool
from memspan.programs import path_of
import pytest

PROGRAMS = ["oshrun", "memspan-info", "memspan-perf", "memspan-store", "memspan-kernels", "memspan-top", "memspan-explain"]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_of_this_version(name):
    done = subprocess.run([path_of(name), "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and memspan.__version__ in done.stdout, done


def test_python_lists_them():
    listed = subprocess.run([sys.executable, "-m", "memspan"], capture_output=True, text=True, timeout=60).stdout
    for name in PROGRAMS:
        assert f"{name} " in listed and path_of(name) in listed


# It finds the library and oshrun of the wheel, whatever else is installed.
def test_memspan_perf_measures():
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    command = [path_of("memspan-perf"), "put", "-n", "2", "-s", "8", "-r", "1", "--samples", "20", "--seconds", "0.01", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)["run"]
    assert [figure["test"] for figure in run["figures"]] == ["put"] and os.path.realpath(memspan.get_lib_path()) in run["library"]


def test_memspan_explain_knows_messages_of_python():
    with pytest.raises(memspan.InvalidArgument) as refused:
        KvPool(share=5, largest_share=4)
    done = subprocess.run([path_of("memspan-explain"), str(refused.value)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("share-too-large\n"), done
