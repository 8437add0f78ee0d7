# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's all-reduce of CPU tensors over shared memory, compiled alone: torch.ops.deepspeed.inference_all_reduce_.

    FOLDER/bin/python deepspeed_op.py FOLDER/deepspeed       compiles it; install_rivals.sh does

Its package is not imported, whose requirements are many; what is compiled, and how, is what its ShareMemCommBuilder
says: csrc/cpu/comm/shm_interface.cpp and shm.cpp, -O2 -fopenmp.
"""

import importlib.util
import os
import sys
from pathlib import Path

NAME = "deepspeed_shm_comm"


def compile_in(folder):
    from torch.utils.cpp_extension import load as build

    sources = [str(folder / "csrc/cpu/comm" / name) for name in ("shm_interface.cpp", "shm.cpp")]
    (folder / "built").mkdir(exist_ok=True)
    build(NAME, sources, extra_cflags=["-O2", "-fopenmp"], extra_ldflags=["-fopenmp"], build_directory=str(folder / "built"))


def load(folder):
    """The module, with initialize(size, rank); ImportError when it was not compiled."""
    import torch  # noqa: F401: its libraries

    program = Path(folder) / "built" / f"{NAME}.so"
    spec = importlib.util.spec_from_file_location(NAME, program)
    if spec is None or not program.exists():
        raise ImportError(f"{program} does not exist (install_rivals.sh)")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def start(folder, rank, size):
    """Collective, after torch.distributed's start: MASTER_ADDR and MASTER_PORT name its shared memory."""
    os.environ["LOCAL_SIZE"] = str(size)
    load(folder).initialize(size, rank)


if __name__ == "__main__":
    compile_in(Path(sys.argv[1]))
