# SPDX-License-Identifier: Apache-2.0
"""Symmetric tensors in memory of a GPU: how they are made of addresses, and the streams in whose order
they are used.

An operation on a stream returns before it is done. Its tensors stay until then: ``Stream.keep``
holds the tensors behind an event of the stream, and a tensor that the program has dropped is not
freed before. PyTorch gives no events of a stream that is only a number, so they are the CUDA
driver's.
"""

import collections
import contextlib
import ctypes
import functools
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.utils.dlpack
from memspan import _core
from memspan.errors import Error, Timeout

LONGEST_MS = 300_000
_LEGACY = 1  # cudaStreamLegacy: the default stream by a number that is not 0
_NOT_READY = 600
_ORDINAL = 9  # of a pointer's attributes
_WITHOUT_TIME = 2  # of an event's flags


def check_device(device: torch.device) -> None:
    """ValueError for a device that has no symmetric memory."""
    if device.type not in ("cpu", "cuda"):
        raise ValueError(f'device is "{device}", allowed are cpu and cuda')
    chosen = os.environ.get("MEMSPAN_DEVICE", "").partition(":")[0]
    if device.type == "cuda" and chosen != "cuda":
        raise ValueError(
            f'device is "{device}", and MEMSPAN_DEVICE is not "cuda": set MEMSPAN_DEVICE=cuda in every '
            f"process before its first symmetric tensor, for symmetric memory of a GPU as well"
        )


def tensor_at(
    memory: int, shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, ordinal: int
) -> torch.Tensor:
    """Memory of GPU ``ordinal`` as a tensor, which keeps the object ``memory``."""
    size = dtype.itemsize
    capsule = _core.device.array(memory, list(shape), list(strides), size, ordinal, memory)
    return torch.utils.dlpack.from_dlpack(capsule).view(dtype)


# ---- the driver


class _Driver:
    """The functions of libcuda.so.1 by name; each raises Error for what is not 0 (or ``or_code``)."""

    def __init__(self) -> None:
        try:
            self._library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Error(f"no CUDA driver: {error}") from None

    def call(self, function: str, *arguments: Any, or_code: int = 0) -> int:
        code = getattr(self._library, function)(*arguments)
        if code not in (0, or_code):
            name = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(name))
            raise Error(f"{function}: {(name.value or b'error').decode()} ({code})")
        return code


@functools.cache
def _driver() -> _Driver:
    return _Driver()


@functools.cache
def _context(ordinal: int) -> ctypes.c_void_p:
    """The GPU's primary context, which is PyTorch's; kept until the process ends."""
    context = ctypes.c_void_p()
    _driver().call("cuInit", 0)
    _driver().call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ordinal)
    return context


@contextlib.contextmanager
def current(ordinal: "int | None") -> Iterator[None]:
    """The GPU is this thread's during the block. None: which one is, stays."""
    if ordinal is None:
        yield
        return
    _driver().call("cuCtxPushCurrent_v2", _context(ordinal))
    try:
        yield
    finally:
        _driver().call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))


def ordinal_of(address: int) -> int:
    """The number of the GPU that has the memory."""
    ordinal = ctypes.c_int(-1)
    place = ctypes.c_uint64(address)
    _driver().call("cuPointerGetAttribute", ctypes.byref(ordinal), _ORDINAL, place)
    return ordinal.value


# ---- streams


class Stream:
    """A stream of a GPU and what is in use by it; one for each handle, for good. Thread-safe."""

    def __init__(self, handle: int, ordinal: int) -> None:
        self.handle, self._ordinal = handle, ordinal
        self._lock = threading.RLock()  # what is dropped may come here again
        self._uses: collections.deque[tuple[ctypes.c_void_p, tuple[Any, ...]]] = collections.deque()
        self._idle: list[ctypes.c_void_p] = []  # events to be used again

    def keep(self, *tensors: Any) -> None:
        """Until the stream has done what it was given so far."""
        self.drop_finished()
        with self._lock, current(self._ordinal):
            event = self._idle.pop() if self._idle else self._make_event()
            _driver().call("cuEventRecord", event, ctypes.c_void_p(self.handle))
            self._uses.append((event, tensors))

    def wait(self, timeout_ms: int = LONGEST_MS) -> None:
        """Until all that it keeps is free. Timeout after so long."""
        end = time.monotonic() + timeout_ms / 1000
        while not self.drop_finished():
            if time.monotonic() > end:
                raise Timeout(f"the stream {self.handle:#x} has not come to its end in {timeout_ms} ms")
            os.sched_yield()

    def drop_finished(self) -> bool:
        """Lets go of what the stream has done. Whether that was all."""
        with self._lock, current(self._ordinal):
            while self._uses and self._is_over(self._uses[0][0]):
                self._idle.append(self._uses.popleft()[0])
            return not self._uses

    @staticmethod
    def _make_event() -> ctypes.c_void_p:
        event = ctypes.c_void_p()
        _driver().call("cuEventCreate", ctypes.byref(event), _WITHOUT_TIME)
        return event

    @staticmethod
    def _is_over(event: ctypes.c_void_p) -> bool:
        return _driver().call("cuEventQuery", event, or_code=_NOT_READY) == 0


_streams: dict[tuple[int, int], Stream] = {}  # by handle and GPU


def _handle_of(stream: Any, ordinal: int) -> int:
    if stream is None:
        stream = torch.cuda.current_stream(ordinal)
    handle = getattr(stream, "cuda_stream", stream)
    if not isinstance(handle, int) or isinstance(handle, bool) or handle < 0:
        raise ValueError(f"stream is {stream!r}, allowed are a stream of torch.cuda and a cudaStream_t")
    return handle or _LEGACY


def stream_at(stream: Any, ordinal: int) -> Stream:
    """A stream of the GPU: of torch.cuda, a number (cudaStream_t), or for None PyTorch's current one."""
    key = _handle_of(stream, ordinal), ordinal
    return _streams.get(key) or _streams.setdefault(key, Stream(*key))


def stream_for(stream: Any, **tensors: "torch.Tensor | None") -> "Stream | None":
    """In whose order an operation on the tensors is; None where all are the CPU's. ValueError for tensors of
    different GPUs, of another device, and for a stream where no tensor is a GPU's."""
    ordinals = {}
    for name, tensor in tensors.items():
        if tensor is None or tensor.device.type == "cpu":
            continue
        if tensor.device.type != "cuda":
            raise ValueError(f"{name} is on {tensor.device}, allowed are tensors of the CPU and of CUDA")
        check_device(tensor.device)
        ordinals[name] = tensor.device.index
    if len(set(ordinals.values())) > 1:
        places = ", ".join(f"{name} on cuda:{ordinal}" for name, ordinal in ordinals.items())
        raise ValueError(f"the tensors are of different GPUs: {places}")
    if ordinals:
        return stream_at(stream, next(iter(ordinals.values())))
    if stream is not None:
        raise ValueError("stream is given, and no tensor is a GPU's: those of the CPU are used at once")
    return None


def drop_finished() -> None:
    """Releases what finished work of the streams used."""
    for stream in list(_streams.values()):
        stream.drop_finished()


def wait_for_current(ordinal: int) -> None:
    """Until what PyTorch has given to its current stream is done."""
    if torch.cuda.is_available():
        on = stream_at(None, ordinal)
        on.keep()
        on.wait()


def wait_for_all(ordinal: int) -> None:
    """Until all work of ours on streams is done, and what PyTorch has given to its current one."""
    wait_for_current(ordinal)
    for stream in list(_streams.values()):
        stream.wait()
