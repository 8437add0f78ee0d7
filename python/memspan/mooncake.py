# SPDX-License-Identifier: Apache-2.0
"""MemFabric's transfers with methods of Mooncake's engine, for programs that call those (docs/port/mooncake.md has the list).

    from memspan.mooncake import TransferEngine
    engine = TransferEngine()
    engine.initialize(hostname, "P2PHANDSHAKE", "tcp", "")
    session_id = f"{hostname}:{engine.get_rpc_port()}"

"P2PHANDSHAKE" stands for the store that the environment names: MEMSPAN_STORE, else
tcp://127.0.0.1:8571, which the first engine of the host hosts. Any other text is a store's URL.
Protocols: "shm", "tcp", "rdma", "ascend" and "sdma" are accepted and mean the fastest transport.
"""

from __future__ import annotations

import ctypes
import dataclasses
import itertools
import os
import threading
import time

from memspan.fabric.engine import TransferEngine as _Engine
from memspan.fabric.engine import Read, TransferOpcode, TransferRequest, Write, fail
from memspan.types import Memory, Numbers

_USUAL_STORE = "tcp://127.0.0.1:8571"
_PROTOCOLS = ("tcp", "shm", "rdma", "ascend", "sdma", "")
_BOTH = "Both"
_PATIENCE_S = 30  # and a second for each GiB
_OVER, _PENDING = 0, 1
_MOST_MESSAGE = 256

__all__ = ["Read", "TransferEngine", "TransferNotify", "TransferOpcode", "Write"]


@dataclasses.dataclass
class TransferNotify:
    """The message of a transfer to the peer at its end: two texts, of 254 bytes together."""

    name: str = ""
    msg: str = ""


def _packed(notify: TransferNotify) -> bytes:
    """A message: the name, a byte 0, the text."""
    return notify.name.encode() + b"\0" + notify.msg.encode()


def _unpacked(sender: str, message: bytes) -> TransferNotify:
    name, divider, text = message.partition(b"\0")
    if not divider:  # not by this class: whoever sent it is its name
        return TransferNotify(sender, message.decode(errors="replace"))
    return TransferNotify(name.decode(errors="replace"), text.decode(errors="replace"))


class TransferEngine:
    """One endpoint, which sends and receives. Codes: 0, or below 0 when something failed;
    ``memspan.fabric.common.get_last_err_msg()`` says why. Addresses are ints, lengths are in bytes. Any
    thread may call anything. ``transport_hint`` and ``location`` mean nothing here."""

    def __init__(self) -> None:
        self._engine = _Engine()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._batches: dict[int, tuple[TransferRequest, float]] = {}  # until when at the latest

    def initialize(
        self, local_hostname: str, metadata_server: str, protocol: str, device_name: str = ""
    ) -> int:
        """Takes the name ``local_hostname:port``, with the port of ``get_rpc_port()``. ``device_name`` means
        nothing here. Returns 0 or a code."""
        del device_name
        if protocol not in _PROTOCOLS:
            return fail(
                f'protocol is "{protocol}", allowed are {", ".join(p for p in _PROTOCOLS if p)}'
            )
        store = metadata_server
        if not store or store == "P2PHANDSHAKE":
            store = os.environ.get("MEMSPAN_STORE", _USUAL_STORE)
        # Everybody may host; the first one does.
        return self._engine.initialize(
            store, local_hostname, _BOTH, 0, store_server_role=_BOTH
        )

    def initialize_ext(
        self,
        local_hostname: str,
        metadata_server: str,
        protocol: str,
        device_name: str,
        metadata_type: str,
    ) -> int:
        """``initialize``; there is one type of store. Returns 0 or a code."""
        del metadata_type
        return self.initialize(local_hostname, metadata_server, protocol, device_name)

    def get_rpc_port(self) -> int:
        """The port of the name; the same before and after ``initialize``."""
        name = self._engine.session_id
        return int(name.rsplit(":", 1)[1]) if name else self._engine.get_rpc_port()

    def get_engine(self) -> _Engine:
        """The engine underneath."""
        return self._engine

    def register_memory(
        self, buffer_addr: Memory, capacity: int, location: str = "*", *, adopt: bool = False
    ) -> int:
        """Others may read and write the ``capacity`` bytes from ``buffer_addr`` on from now on; ``adopt`` as in
        ``memspan.fabric``. Returns 0 or a code."""
        del location
        return self._engine.register_memory(buffer_addr, capacity, adopt=adopt)

    def unregister_memory(self, buffer_addr: Memory) -> int:
        """Others no longer may. Returns 0 or a code."""
        return self._engine.unregister_memory(buffer_addr)

    def batch_register_memory(
        self,
        buffer_addrs: Numbers,
        capacities: Numbers,
        location: str = "*",
        *,
        adopt: bool = False,
    ) -> int:
        """``register_memory`` of all of them, or none. Returns 0 or a code."""
        del location
        return self._engine.batch_register_memory(buffer_addrs, capacities, adopt=adopt)

    def batch_unregister_memory(self, buffer_addrs: Numbers) -> int:
        """``unregister_memory`` of all of them. Returns 0 or a code."""
        return self._engine.batch_unregister_memory(buffer_addrs)

    def transfer_sync_write(
        self,
        target_hostname: str,
        buffer: Memory,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        """Copies ``length`` bytes from ``buffer`` to the peer's address; complete on return.
        Returns 0 or a code."""
        del transport_hint
        return self._engine.transfer_sync_write(
            target_hostname, buffer, peer_buffer_address, length
        )

    def transfer_sync_read(
        self,
        target_hostname: str,
        buffer: Memory,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        """``length`` bytes from the address there to ``buffer`` here. Returns 0 or a code."""
        del transport_hint
        return self._engine.transfer_sync_read(target_hostname, buffer, peer_buffer_address, length)

    def batch_transfer_sync_write(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        transport_hint: str = "",
    ) -> int:
        """Many pieces at once from here to the peer, lengths in bytes. Returns 0 or a code."""
        del transport_hint
        return self._engine.batch_transfer_sync_write(
            target_hostname, buffers, peer_buffer_addresses, lengths
        )

    def batch_transfer_sync_read(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        transport_hint: str = "",
    ) -> int:
        """Many pieces at once from the peer to here, lengths in bytes. Returns 0 or a code."""
        del transport_hint
        return self._engine.batch_transfer_sync_read(
            target_hostname, buffers, peer_buffer_addresses, lengths
        )

    # ---- telling the peer

    def transfer_sync(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        opcode: int,
        notify: TransferNotify | None = None,
        transport_hint: str = "",
    ) -> int:
        """``batch_transfer_sync`` of one piece."""
        return self.batch_transfer_sync(
            target_hostname,
            [buffer],
            [peer_buffer_address],
            [length],
            opcode,
            notify,
            transport_hint,
        )

    def batch_transfer_sync(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        opcode: int,
        notify: TransferNotify | None = None,
        transport_hint: str = "",
    ) -> int:
        """Many pieces at once, to the peer (``Write``) or from it (``Read``); the peer's
        ``get_notifies`` returns ``notify`` when they have arrived. Returns 0 or a code."""
        message = None if notify is None else _packed(notify)
        if message is not None and len(message) > _MOST_MESSAGE:
            return fail(
                f"name and msg have {len(message) - 1} bytes, allowed are up to {_MOST_MESSAGE - 1}"
            )
        batch = self._begin(
            target_hostname, buffers, peer_buffer_addresses, lengths, opcode, message
        )
        return self.get_batch_transfer_status([batch]) if batch else -1

    def get_notifies(self) -> list[TransferNotify]:
        """The messages of peers' transfers since the last call, the oldest first. RuntimeError
        before ``initialize``."""
        told = []
        while (message := self._engine.receive()) is not None:
            told.append(_unpacked(*message))
        return told

    # ---- transfers in the background

    def batch_transfer_async_write(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        transport_hint: str = "",
    ) -> int:
        """``batch_transfer_async`` to the peer."""
        return self.batch_transfer_async(
            target_hostname, buffers, peer_buffer_addresses, lengths, Write, transport_hint
        )

    def batch_transfer_async_read(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        transport_hint: str = "",
    ) -> int:
        """``batch_transfer_async`` from the peer."""
        return self.batch_transfer_async(
            target_hostname, buffers, peer_buffer_addresses, lengths, Read, transport_hint
        )

    def batch_transfer_async(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
        opcode: int,
        transport_hint: str = "",
    ) -> int:
        """Begins to move many pieces, to the peer (``Write``) or from it (``Read``); both ends stay as they are
        until it is over. The number of the batch, which one of the two calls below must be given; 0
        when it cannot begin."""
        del transport_hint
        return self._begin(target_hostname, buffers, peer_buffer_addresses, lengths, opcode, None)

    def transfer_submit_write(
        self,
        target_hostname: str,
        buffer: int,
        peer_buffer_address: int,
        length: int,
        transport_hint: str = "",
    ) -> int:
        """``batch_transfer_async_write`` of one piece, but -1 when it cannot begin."""
        del transport_hint
        pieces = [buffer], [peer_buffer_address], [length]
        return self._begin(target_hostname, *pieces, Write, None) or -1

    def get_batch_transfer_status(self, batch_ids: list[int]) -> int:
        """Waits for all these batches, which are known no longer then: 0 when they are over, -1 when one
        failed or took more than 30 s and a second for each GiB; what is left is cancelled."""
        with self._lock:
            batches = {number: self._batches.pop(number, None) for number in batch_ids}
        try:
            for number, batch in batches.items():
                if batch is None:
                    return fail(f"there is no batch {number}")
                request, end = batch
                left_ms = max(int((end - time.monotonic()) * 1000), 0)
                if request.wait(left_ms) != _OVER:
                    return -1
        finally:
            for batch in batches.values():
                if batch is not None:
                    batch[0].destroy()
        return 0

    def transfer_check_status(self, batch_id: int) -> int:
        """1: the batch is over; 0: not yet; -1: it failed; -2: it takes too long. It is known no longer
        after 1 and -1."""
        with self._lock:
            batch = self._batches.pop(batch_id, None)
            if batch is None:
                return fail(f"there is no batch {batch_id}")
            request, end = batch
            code = request.test()
            if code == _PENDING:
                self._batches[batch_id] = batch
                return 0 if time.monotonic() < end else -2
        request.destroy()
        return 1 if code == _OVER else -1

    def _begin(
        self,
        peer: str,
        buffers: Numbers,
        peer_buffers: Numbers,
        lengths: Numbers,
        opcode: int,
        message: bytes | None,
    ) -> int:
        """The batch's number, or 0."""
        try:
            request = self._engine.prepare(opcode, peer, buffers, peer_buffers, lengths)
        except (RuntimeError, ValueError) as error:
            fail(str(error))
            return 0
        told = 0 if message is None else request.set_message(message)
        if told != 0 or request.post() != 0:
            request.destroy()
            return 0
        bytes_: int = sum(lengths)  # type: ignore[arg-type]
        end = time.monotonic() + _PATIENCE_S + int(bytes_) / 2**30
        with self._lock:
            number = next(self._numbers)
            self._batches[number] = request, end
        return number

    # ---- memory

    def allocate_managed_buffer(self, length: int) -> int:
        """The address of ``length`` bytes of registered memory; 0 if memory is short."""
        return self._engine.trans_malloc(length)

    def free_managed_buffer(self, buffer_addr: int, length: int) -> int:
        """Gives back what ``allocate_managed_buffer`` gave. Returns 0 or a code."""
        del length
        return self._engine.trans_free(buffer_addr)

    def write_bytes_to_buffer(self, dest_address: int, src_ptr: bytes, length: int) -> int:
        """The first ``length`` of some bytes to an address here, which must have room for them. Returns 0;
        ValueError when there are fewer bytes."""
        if not 0 <= length <= len(src_ptr):
            raise ValueError(f"length is {length}, allowed are 0 to {len(src_ptr)}")
        ctypes.memmove(dest_address, src_ptr, length)
        return 0

    def read_bytes_from_buffer(self, source_address: int, length: int) -> bytes:
        """``length`` bytes at an address here. ValueError for a length below 0."""
        if length < 0:
            raise ValueError(f"length is {length}, allowed is 0 and more")
        return ctypes.string_at(source_address, length)

    def send_probe(self, target_hostname: str) -> int:
        """0 if the endpoint exists; else a code."""
        return self._engine.probe(target_hostname)
