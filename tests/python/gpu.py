# SPDX-License-Identifier: Apache-2.0
"""What a program does with a GPU of its own: a real one where PyTorch finds it, else the stand-in of the
CUDA driver (tests/support/cuda_driver). PyTorch of the CPU has no operator for tensors on it, but makes
them, and knows their addresses, shapes and types."""

import contextlib
import ctypes
import os
import pathlib

import jobs
import pytest
import torch
from jobs import hosts

STANDIN = pathlib.Path(__file__).resolve().parents[2] / "build/tests/cuda_driver/libcuda.so.1"
IS_REAL = torch.cuda.is_available()
needs_gpu = pytest.mark.skipif(
    not IS_REAL and not STANDIN.exists(),
    reason=f"does not apply: there is no GPU, and {STANDIN} does not exist",
)
# A test of what only the stand-in can be: two GPUs, or none.
needs_standin = pytest.mark.skipif(IS_REAL, reason="does not apply: there is a real GPU")
_HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def run(function, ranks, **environment):
    """As jobs.run, with symmetric memory of a GPU."""
    return jobs.run(
        function,
        ranks,
        SHMEM_IP_PORT=f"tcp://{hosts.ADDRESS}:{jobs.free_port()}",
        **{"MEMSPAN_DEVICE": "cuda", "SYMMETRIC_MEMORY_HEAP_SIZE": str(16 << 20), **environment},
    )


class Gpu:
    """Device 0, this thread's. Whoever opens libcuda.so.1 later gets the stand-in, if that is taken."""

    def __init__(self):
        self._driver = ctypes.CDLL("libcuda.so.1" if IS_REAL else str(STANDIN), mode=ctypes.RTLD_GLOBAL)
        self._call("cuInit", 0)
        context = ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self._call("cuCtxPushCurrent_v2", context)
        self._functions = []  # which streams will call
        if not IS_REAL:  # PyTorch looks for a GPU before it makes a tensor of one
            torch.cuda._lazy_init = lambda: None

    def _call(self, function, *arguments):
        code = getattr(self._driver, function)(*arguments)
        assert code == 0, f"{function}: {code}"

    def tensor(self, values):
        """Memory of its own with these values."""
        from memspan.torch import cuda

        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(max(values.nbytes, 1)))
        made = cuda.tensor_at(place.value, values.shape, values.stride(), values.dtype, 0)
        self.store(made, values)
        return made

    def store(self, tensor, values):
        """As the GPU's kernels would."""
        assert tensor.nbytes == values.nbytes
        self._copy(tensor.data_ptr(), values.data_ptr(), values.nbytes)

    def load(self, tensor):
        """The values as a tensor of the CPU."""
        values = torch.empty(tuple(tensor.shape), dtype=tensor.dtype)
        self._copy(values.data_ptr(), tensor.data_ptr(), values.nbytes)
        return values

    def _copy(self, to, source, count):
        self._call("cuMemcpy", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(count))
        self.synchronize(None)  # cuMemcpy may return before its bytes are at a real GPU

    def stream(self):
        """A new one, by its number."""
        made = ctypes.c_void_p()
        self._call("cuStreamCreate", ctypes.byref(made), 1)
        return made.value

    def synchronize(self, stream):
        self._call("cuStreamSynchronize", ctypes.c_void_p(stream))

    @contextlib.contextmanager
    def held(self, stream):
        """What the stream is given in the block it does when the block ends, and has done then."""
        ours, theirs = os.pipe()
        self._functions.append(_HOST_FUNCTION(lambda _: os.read(ours, 1)))
        self._call("cuLaunchHostFunc", ctypes.c_void_p(stream), self._functions[-1], None)
        try:
            yield
        finally:
            os.write(theirs, b"1")
            self.synchronize(stream)  # no function of Python runs when the interpreter ends
            os.close(ours)
            os.close(theirs)
