# SPDX-License-Identifier: Apache-2.0
"""Transfers between named endpoints: MemFabric's TransferEngine.

    engine = TransferEngine()
    engine.initialize("tcp://127.0.0.1:8570", "127.0.0.1:6001", "Prefill", device_id=0)
    engine.register_memory(array.ctypes.data, array.nbytes)
    engine.transfer_sync_write("127.0.0.1:6002", array.ctypes.data, address_there, array.nbytes)

Addresses are ints, sizes are in bytes; batches are lists of ints or arrays of 64-bit integers.
Functions that return int give 0 or a code below 0, and ``get_last_err_msg()`` says why. Any thread
may call anything; the GIL is released while a call waits.
"""

from __future__ import annotations

import contextlib
import enum
import os
import random
import socket
from collections.abc import Callable
from typing import Any, SupportsInt

from memspan import _core
from memspan.errors import Error
from memspan.fabric import common
from memspan.owner import Owner
from memspan.types import Buffer, Memory, Numbers

_c = _core.smem

_MOST_REGISTERED = 1 << 20
_SECONDS = 120
_PORTS = range(15000, 25001)
_FOREVER = 2**32 - 1
_PENDING = 1

__all__ = [
    "DEVICE_RDMA",
    "HOST_RDMA",
    "HOST_TCP",
    "HOST_URMA",
    "Read",
    "SDMA",
    "TransDataOpType",
    "TransferEngine",
    "TransferOpcode",
    "TransferRequest",
    "Write",
]


class TransferOpcode(enum.IntEnum):
    """Which way a transfer goes."""

    Read = 0
    Write = 1


class TransDataOpType(enum.IntFlag):
    """Ways to move data, as preferences; combined by ``|``."""

    SDMA = 1
    HOST_RDMA = 2
    HOST_TCP = 4
    DEVICE_RDMA = 8
    HOST_URMA = 16


# Programs name the values without their class, too.
Read = TransferOpcode.Read
Write = TransferOpcode.Write
SDMA = TransDataOpType.SDMA
HOST_RDMA = TransDataOpType.HOST_RDMA
HOST_TCP = TransDataOpType.HOST_TCP
DEVICE_RDMA = TransDataOpType.DEVICE_RDMA
HOST_URMA = TransDataOpType.HOST_URMA

_FAILED = -1
_ROLES = {"Prefill": 1, "Sender": 1, "Decode": 2, "Receiver": 2, "Both": 3}


def apply_log_level() -> None:
    """ASCEND_MF_LOG_LEVEL (one digit), unless SHMEM_LOG_LEVEL says it already."""
    level = os.environ.get("ASCEND_MF_LOG_LEVEL", "")
    if "SHMEM_LOG_LEVEL" not in os.environ and len(level) == 1 and level.isdigit():
        common.set_log_level(int(level))


def fail(message: str) -> int:
    """The sentence as this thread's failure, and the code."""
    return _c.keep_failure("TransferEngine", _FAILED, message)


def _reserve_port() -> tuple[int, socket.socket | None]:
    """(port, socket): no other process can bind the port while the socket is open."""
    # Workers that set the same seed must not draw the same ports.
    for port in random.SystemRandom().sample(_PORTS, 1000):
        reserved = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            reserved.bind(("0.0.0.0", port))
            return port, reserved
        except OSError:
            reserved.close()
    return 0, None


class TransferRequest(Owner):
    """A transfer that was prepared once and can be posted many times (memspan's own)."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def destroy(self) -> None:
        """Cancels it, and ends it."""
        self._end(_c.transfer_destroy)

    def set_message(self, message: bytes | Buffer) -> int:
        """Up to 256 bytes that the peer receives after the data. Returns 0 or a code."""
        return _c.transfer_set_message(self._handle, bytes(message))

    def set_counter(self, counter: int, value: int) -> int:
        """Adds ``value`` to one of the peer's counters (0 to 1023) after the data. Returns 0 or a code."""
        return _c.transfer_set_counter(self._handle, counter, value)

    def set_patience(self, timeout_ms: int) -> int:
        """How long each posting waits for memory that a running peer has not registered yet; 0: it
        fails at once. Returns 0 or a code."""
        return _c.transfer_set_patience(self._handle, timeout_ms)

    def post(self) -> int:
        """Begins it; both ends stay as they are until it is over. Returns 0 or a code."""
        return _c.transfer_post(self._handle)

    def test(self) -> int:
        """0: over; 1: not yet; 2: cancelled; below 0: why it failed."""
        return _c.transfer_test(self._handle)

    def result(self) -> tuple[int, int]:
        """(what ``test`` says, how many pieces were moved)."""
        return _c.transfer_result(self._handle)

    def wait(self, timeout_ms: int = _FOREVER) -> int:
        """Until it is over; then as ``test``. -2004 after so many milliseconds, which changes nothing."""
        return _c.transfer_wait(self._handle, timeout_ms)

    def cancel(self) -> int:
        """On return neither end is touched any more. Returns 0 or a code."""
        return _c.transfer_cancel(self._handle)

    def fileno(self) -> int:
        """A descriptor for poll(), readable when it is over."""
        return _c.transfer_event(self._handle)


class TransferEngine(Owner):
    """An endpoint of transfers. ``destroy()`` ends it, as does the end of the object. Before
    ``initialize`` every call returns -1."""

    TransDataOpType = TransDataOpType
    TransferOpcode = TransferOpcode

    def __init__(self) -> None:
        self._handle = 0
        self._name = ""
        self._port = 0
        self._reserved: socket.socket | None = None

    def get_rpc_port(self) -> int:
        """A free port of this host, kept for this engine; 0 if none is free. Before ``initialize``
        for a session id, or after."""
        if self._port == 0:
            self._port, self._reserved = _reserve_port()
        return self._port

    def initialize(
        self,
        store_url: str,
        session_id: str,
        role: str,
        device_id: int,
        data_op_type: int = TransDataOpType.SDMA,
        store_server_role: str | None = None,
    ) -> int:
        """Takes the name ``session_id`` (``ip:port`` or ``host:port``; without a port the one of ``get_rpc_port`` is
        added) at the store. role: "Prefill" sends, "Decode" receives, "Both". The process of the
        role ``store_server_role`` hosts the store if none runs, and again if it is lost. A store
        that comes back is found again, also at another address of a list
        ("tcp://one:8666,tcp://two:8666"). Returns 0 or a code."""
        apply_log_level()
        if self._handle:
            return 0
        if role not in _ROLES:
            return fail(
                f'The value of role is invalid: "{role}", allowed are {", ".join(_ROLES)}'
            )
        if not _has_port(session_id):
            session_id = f"{session_id}:{self.get_rpc_port()}"
        code, self._handle = _c.trans_create(
            store_url,
            session_id,
            _ROLES[role],
            _SECONDS,
            device_id,
            0,
            int(data_op_type),
            store_server_role == role,
        )
        self._name = session_id if code == 0 else ""
        return code

    @property
    def session_id(self) -> str:
        """The name that others know it by; "" before ``initialize``."""
        return self._name

    def destroy(self) -> None:
        """Ends the endpoint; others' transfers to it fail from now on. Raises ``memspan.Error`` in its own
        callback."""
        self._end(lambda handle: _c.trans_destroy(handle, 0))
        reserved, self._reserved = getattr(self, "_reserved", None), None
        if reserved is not None:
            reserved.close()

    def unInitialize(self) -> None:
        """Ends the endpoint, as ``destroy``."""
        self.destroy()

    # ---- memory

    def register_memory(self, buffer_addr: Memory, capacity: int, *, adopt: bool = False) -> int:
        """Others may read and write the ``capacity`` bytes from ``buffer_addr`` on from now on. Returns 0 or
        a code. With ``adopt`` the pages are replaced by shared ones in place, which peers on this host
        map: transfers are then as fast as with ``trans_malloc``. Such memory has to be unregistered
        before it is freed or resized."""
        if adopt:
            return self._do(_c.trans_register_adopted, buffer_addr, capacity)
        return self._do(_c.trans_register_mem, buffer_addr, capacity, 0)

    def unregister_memory(self, buffer_addr: Memory) -> int:
        """Others no longer may. Returns 0 or a code."""
        return self._do(_c.trans_deregister_mem, buffer_addr)

    def batch_register_memory(
        self, buffer_addrs: Numbers, capacities: Numbers, *, adopt: bool = False
    ) -> int:
        """``register_memory`` of all of them, up to 1,048,576, or none. Returns 0 or a code."""
        addresses, sizes = _count(buffer_addrs), _count(capacities)
        if addresses != sizes or addresses > _MOST_REGISTERED:
            return fail(
                f"there are {addresses} addresses and {sizes} capacities; allowed are up to "
                f"{_MOST_REGISTERED}, as many of both"
            )
        if adopt and addresses > 0:
            return self._adopt_all(buffer_addrs, capacities)
        return self._do(_c.trans_batch_register_mem, buffer_addrs, capacities, 0)

    def _adopt_all(self, addresses: Any, sizes: Any) -> int:
        with contextlib.ExitStack() as undo:
            for address, size in zip(addresses, sizes):
                code = self.register_memory(int(address), int(size), adopt=True)
                if code != 0:
                    return code
                undo.callback(_c.trans_deregister_mem, self._handle, int(address))
            undo.pop_all()
        return 0

    def batch_unregister_memory(self, buffer_addrs: Numbers) -> int:
        """``unregister_memory`` of all of them. Returns 0, or the code of the first that failed."""
        first = 0
        failure: Error | None = None
        addresses: Any = buffer_addrs
        for address in addresses:
            try:
                code = self.unregister_memory(int(address))
                first = first or code
            except Error as error:
                failure = failure or error
        if failure is not None:
            raise failure
        return first

    def trans_malloc(self, capacity: int) -> int:
        """The address of ``capacity`` bytes of registered memory that peers on this host map, which
        is faster; 0 if memory is short."""
        return _c.trans_malloc(self._handle, capacity)

    def trans_device_malloc(self, capacity: int) -> int:
        """As ``trans_malloc``, but memory of the device: with ``MEMSPAN_DEVICE=cuda`` that of the GPU,
        which the host cannot load or store."""
        return _c.trans_device_malloc(self._handle, capacity)

    def trans_free(self, addr: int) -> int:
        """Gives back what ``trans_malloc`` or ``trans_device_malloc`` gave. Returns 0 or a code."""
        return self._do(_c.trans_free, addr)

    # ---- transfers

    def _do(self, function: Callable[..., int], *arguments: Any) -> int:
        if self._handle == 0:
            return fail("the engine is not initialized")
        return function(self._handle, *arguments)

    def _batch(
        self,
        function: Callable[..., int],
        writes: bool,
        peer: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        *rest: int,
    ) -> int:
        counts = _count(buffers), _count(peer_buffers), _count(lengths)
        if len(set(counts)) != 1:
            return fail(
                f"there are {counts[0]} buffers, {counts[1]} peer buffers and {counts[2]} lengths; "
                "their numbers must be equal"
            )
        return self._do(function, writes, peer, buffers, peer_buffers, lengths, *rest)

    def transfer_sync_write(
        self, dest_session: str, buffer: Memory, peer_buffer: int, length: int, flags: int = 0
    ) -> int:
        """Copies ``length`` bytes from ``buffer`` to the peer's ``peer_buffer``; complete on
        return. Returns 0 or a code."""
        return self._do(_c.trans_move, True, dest_session, buffer, peer_buffer, length, flags)

    def transfer_sync_read(
        self, dest_session: str, buffer: Memory, peer_buffer: int, length: int, flags: int = 0
    ) -> int:
        """``length`` bytes from ``peer_buffer`` there to ``buffer`` here. Returns 0 or a code."""
        return self._do(_c.trans_move, False, dest_session, buffer, peer_buffer, length, flags)

    def batch_transfer_sync_write(
        self,
        dest_session: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        flags: int = 0,
    ) -> int:
        """Many pieces at once from here to the peer, lengths in bytes, as many of each list. Returns 0 or a code."""
        return self._batch(
            _c.trans_batch_move, True, dest_session, buffers, peer_buffers, lengths, flags
        )

    def batch_transfer_sync_read(
        self,
        dest_session: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        flags: int = 0,
    ) -> int:
        """Many pieces at once from the peer to here, lengths in bytes, as many of each list. Returns 0 or a code."""
        return self._batch(
            _c.trans_batch_move, False, dest_session, buffers, peer_buffers, lengths, flags
        )

    def transfer_async_write_submit(
        self,
        dest_session: str,
        buffer: int,
        peer_buffer: int,
        length: int,
        stream: SupportsInt,
        flags: int = 0,
    ) -> int:
        """Copies ``length`` bytes from ``buffer`` to the peer's ``peer_buffer`` in the order of a
        stream (``shmem.Stream``). Returns 0 or a code."""
        return self._do(
            _c.trans_submit, True, dest_session, buffer, peer_buffer, length, int(stream), flags
        )

    def transfer_async_read_submit(
        self,
        dest_session: str,
        buffer: int,
        peer_buffer: int,
        length: int,
        stream: SupportsInt,
        flags: int = 0,
    ) -> int:
        """Copies ``length`` bytes from the peer's ``peer_buffer`` to ``buffer`` in the order of a
        stream. Returns 0 or a code."""
        return self._do(
            _c.trans_submit, False, dest_session, buffer, peer_buffer, length, int(stream), flags
        )

    def batch_transfer_async_write_submit(
        self,
        dest_session: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        stream: SupportsInt,
        flags: int = 0,
    ) -> int:
        """Copies many pieces to the peer in the order of a stream. Returns 0 or a code."""
        return self._batch(
            _c.trans_batch_submit,
            True,
            dest_session,
            buffers,
            peer_buffers,
            lengths,
            int(stream),
            flags,
        )

    def batch_transfer_async_read_submit(
        self,
        dest_session: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        stream: SupportsInt,
        flags: int = 0,
    ) -> int:
        """Copies many pieces from the peer in the order of a stream. Returns 0 or a code."""
        return self._batch(
            _c.trans_batch_submit,
            False,
            dest_session,
            buffers,
            peer_buffers,
            lengths,
            int(stream),
            flags,
        )

    # ---- memspan's own

    def probe(self, dest_session: str) -> int:
        """Finds a peer before the first transfer to it. Returns 0, or why one would fail now."""
        return self._do(_c.transfer_reach, dest_session)

    def set_peer_down_callback(self, down: Callable[[str], object] | None) -> int:
        """``down(session_id)`` is called, on a thread of the library's, when a peer died or ended; None:
        nothing. Returns 0 or a code."""
        return self._do(_c.trans_set_peer_down_callback, down)

    def prepare(
        self,
        opcode: int,
        dest_session: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
    ) -> TransferRequest:
        """Many pieces to write or read (``TransferOpcode``), lengths in bytes, as a ``TransferRequest`` that can be posted many times;
        RuntimeError when it cannot be made, ValueError for another opcode and lists that do not fit."""
        if self._handle == 0:
            raise RuntimeError("the engine is not initialized")
        if opcode not in tuple(TransferOpcode):
            raise ValueError(f"opcode is {opcode}, allowed are Read (0) and Write (1)")
        code, handle = _c.transfer_prepare(
            self._handle,
            opcode == TransferOpcode.Write,
            dest_session,
            buffers,
            peer_buffers,
            lengths,
        )
        if code != 0:
            raise RuntimeError(_c.get_last_err_msg())
        return TransferRequest(handle)

    def receive(self, timeout_ms: int = 0) -> tuple[str, bytes] | None:
        """The oldest message of a peer, (session_id, bytes); None if none arrives within so many
        milliseconds. RuntimeError when it fails."""
        code, sender, message = _c.transfer_receive(self._handle, timeout_ms)
        if code == _PENDING:
            return None
        if code != 0:
            raise RuntimeError(_c.get_last_err_msg())
        return sender, message

    def messages_fileno(self) -> int:
        """A descriptor for poll(), readable while there is a message."""
        return _c.transfer_messages_event(self._handle)

    def counter(self, counter: int) -> int:
        """The value of one of this endpoint's counters (0 to 1023). RuntimeError for another."""
        code, value = _c.transfer_counter(self._handle, counter)
        if code != 0:
            raise RuntimeError(_c.get_last_err_msg())
        return value

    def wait_counter(self, counter: int, value: int, timeout_ms: int = _FOREVER) -> int:
        """Until the counter is ``value`` or more. Returns 0, or -2004 after so many milliseconds."""
        return self._do(_c.transfer_wait_counter, counter, value, timeout_ms)


def _count(numbers: Any) -> int:
    return len(numbers)


def _has_port(session_id: str) -> bool:
    return ":" in session_id and session_id.rsplit(":", 1)[1].isdigit()
