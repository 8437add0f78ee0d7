# SPDX-License-Identifier: Apache-2.0
"""MemFabric's transfers with the methods of Mooncake's engine, for programs that call those.

    from memspan.mooncake import TransferEngine
    engine = TransferEngine()
    engine.initialize(hostname, "P2PHANDSHAKE", "tcp", "")
    session_id = f"{hostname}:{engine.get_rpc_port()}"

"P2PHANDSHAKE" stands for the store that the environment names: MEMSPAN_STORE_URL, else
tcp://127.0.0.1:8571, which the first engine of the host hosts. Any other text is a store's URL.
Protocols: "shm" and "tcp" are taken and mean what is fastest, "rdma", "ascend" and "sdma" as well.
"""

import os

from memspan.fabric.engine import TransferEngine as _Engine
from memspan.fabric.engine import fail
from memspan.types import Memory, Numbers

_USUAL_STORE = "tcp://127.0.0.1:8571"
_PROTOCOLS = ("tcp", "shm", "rdma", "ascend", "sdma", "")
_BOTH = "Both"

__all__ = ["TransferEngine"]


class TransferEngine:
    """One endpoint, which sends and receives. Codes: 0, or below 0 when something failed."""

    def __init__(self) -> None:
        self._engine = _Engine()

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
            store = os.environ.get("MEMSPAN_STORE_URL", _USUAL_STORE)
        # Everybody may host; the first one does.
        return self._engine.initialize(
            store, local_hostname, _BOTH, 0, store_server_role=_BOTH
        )

    def get_rpc_port(self) -> int:
        """The port of the name; the same before and after ``initialize``."""
        name = self._engine.session_id
        return int(name.rsplit(":", 1)[1]) if name else self._engine.get_rpc_port()

    def get_engine(self) -> _Engine:
        """The engine underneath."""
        return self._engine

    def register_memory(self, buffer_addr: Memory, capacity: int) -> int:
        """Others may read and write the ``capacity`` bytes from ``buffer_addr`` on from now on. Returns 0 or a
        code."""
        return self._engine.register_memory(buffer_addr, capacity)

    def unregister_memory(self, buffer_addr: Memory) -> int:
        """Others no longer may. Returns 0 or a code."""
        return self._engine.unregister_memory(buffer_addr)

    def batch_register_memory(self, buffer_addrs: Numbers, capacities: Numbers) -> int:
        """``register_memory`` of all of them, or none. Returns 0 or a code."""
        return self._engine.batch_register_memory(buffer_addrs, capacities)

    def batch_unregister_memory(self, buffer_addrs: Numbers) -> int:
        """``unregister_memory`` of all of them. Returns 0 or a code."""
        return self._engine.batch_unregister_memory(buffer_addrs)

    def transfer_sync_write(
        self, target_hostname: str, buffer: Memory, peer_buffer_address: int, length: int
    ) -> int:
        """``length`` bytes from ``buffer`` here to the address there; they are there on return. Returns 0 or a
        code."""
        return self._engine.transfer_sync_write(
            target_hostname, buffer, peer_buffer_address, length
        )

    def transfer_sync_read(
        self, target_hostname: str, buffer: Memory, peer_buffer_address: int, length: int
    ) -> int:
        """``length`` bytes from the address there to ``buffer`` here. Returns 0 or a code."""
        return self._engine.transfer_sync_read(target_hostname, buffer, peer_buffer_address, length)

    def batch_transfer_sync_write(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
    ) -> int:
        """Many pieces at once from here to the peer, lengths in bytes. Returns 0 or a code."""
        return self._engine.batch_transfer_sync_write(
            target_hostname, buffers, peer_buffer_addresses, lengths
        )

    def batch_transfer_sync_read(
        self,
        target_hostname: str,
        buffers: Numbers,
        peer_buffer_addresses: Numbers,
        lengths: Numbers,
    ) -> int:
        """Many pieces at once from the peer to here, lengths in bytes. Returns 0 or a code."""
        return self._engine.batch_transfer_sync_read(
            target_hostname, buffers, peer_buffer_addresses, lengths
        )

    def send_probe(self, target_hostname: str) -> int:
        """0 when the endpoint is there; else a code."""
        return self._engine.probe(target_hostname)
