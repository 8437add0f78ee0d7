# SPDX-License-Identifier: Apache-2.0
"""Paged KV caches of workers, and moving blocks of them between workers.

A worker has, for each layer, a tensor of blocks (pages). Blocks are named by number, layers by name;
where they lie, and what they mean, another worker learns once from the directory that each worker serves
at the port of its own name.
"""

from __future__ import annotations

import hashlib
import json
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from memspan.connectors.kv_regions import Pieces, Region, regions_of
from memspan.errors import Error, PeerFailed
from memspan.fabric import common
from memspan.fabric.engine import TransferEngine, TransferOpcode

if TYPE_CHECKING:
    import torch

_NOTE_BYTES = 8
_MOST_DIRECTORY = 1 << 24
_PATIENCE_S = 30
_CONNECT_S = 5
_MESSAGE_BYTES = 256


def _fail() -> None:
    """Raises what the last call of this thread failed with."""
    raise Error(common.get_last_err_msg(), common.get_last_err_code())


class _Answer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(_PATIENCE_S)
        server: Any = self.server
        self.request.sendall(server.directory)


class _Directory(socketserver.ThreadingTCPServer):
    daemon_threads = True
    directory = b""


def digest(description: Mapping[str, Any]) -> str:
    """Of what a cache's bytes mean; equal descriptions have equal digests."""
    text = json.dumps(description, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


class Peer:
    """What another worker's directory says."""

    def __init__(self, name: str, directory: dict[str, Any]) -> None:
        self.name = name
        self.description: dict[str, Any] = directory["description"]
        self.digest: str = directory["digest"]
        self.blocks: int = directory["blocks"]
        self.note: int = directory["note"]
        self.tables: dict[str, int] = directory["tables"]  # addresses by name
        self.layers = {
            layer: [Region(*region) for region in regions]
            for layer, regions in directory["layers"].items()
        }


class KvWorker:
    """One worker's caches and its endpoint, over the store at ``store_url``; its name is ``host`` and a
    free port. ``description``: what the caches' bytes mean; workers with another one are refused.
    Thread-safe. ``memspan.Error`` when it cannot start."""

    def __init__(
        self,
        store_url: str,
        host: str,
        hosts_store: bool = False,
        description: Mapping[str, Any] | None = None,
    ) -> None:
        self._server = _Directory((host, 0), _Answer)
        self.name = f"{host}:{self._server.server_address[1]}"
        self._engine = TransferEngine()
        role = "Both" if hosts_store else None
        if self._engine.initialize(store_url, self.name, "Both", 0, store_server_role=role) != 0:
            self._server.server_close()
            _fail()
        self._note = np.zeros(_NOTE_BYTES, np.uint8)
        self.register_memory(self._note.ctypes.data, _NOTE_BYTES)
        self._description = dict(description or {})
        self._digest = digest(self._description)
        self._tables: dict[str, int] = {}
        self.layers: dict[str, list[Region]] = {}
        self._blocks = 0
        self._peers: dict[str, Peer] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="memspan-directory", daemon=True
        )
        self._engine.set_peer_down_callback(self.forget)

    def register_memory(self, address: int, size: int, adopt: bool = False) -> None:
        """Others may read and write it from now on. ``adopt``: as ``TransferEngine.register_memory``,
        and by copies of the operating system where memory cannot be adopted. ``memspan.Error``."""
        if adopt and self._engine.register_memory(address, size, adopt=True) == 0:
            return
        if self._engine.register_memory(address, size) != 0:
            _fail()

    def share_table(self, name: str, address: int, size: int) -> None:
        """Memory that peers find by this name in the directory. Before ``register``."""
        self.register_memory(address, size)
        self._tables[name] = address

    def register(
        self,
        caches: "Mapping[str, torch.Tensor]",
        blocks: int,
        shards: Mapping[str, int] | None = None,
        adopt: bool = False,
    ) -> None:
        """The layers' tensors of so many blocks, by name; from now on other workers may read and write
        them. ``shards``: which share of a layer's heads is here (0). ValueError as ``regions_of``, ``memspan.Error`` when they cannot be registered."""
        spans: dict[int, tuple[int, int]] = {}  # of each allocation, what is used
        self._blocks = blocks
        for name, tensor in caches.items():
            self.layers[name] = regions_of(tensor, blocks, (shards or {}).get(name, 0))
            storage = tensor.untyped_storage().data_ptr()
            start = tensor.data_ptr()
            last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
            end = start + (last + 1) * tensor.element_size()
            known = spans.get(storage, (start, end))
            spans[storage] = (min(known[0], start), max(known[1], end))
        for start, end in spans.values():
            self.register_memory(start, end - start, adopt)
        directory = {
            "description": self._description,
            "digest": self._digest,
            "layers": self.layers,
            "blocks": blocks,
            "note": self._note.ctypes.data,
            "tables": self._tables,
        }
        self._server.directory = json.dumps(directory).encode()
        self._thread.start()

    def close(self) -> None:
        """Others' transfers with this worker fail from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._engine.destroy()

    # ---- peers

    def forget(self, peer: str) -> None:
        """Its directory is asked for again, as after its restart."""
        with self._lock:
            self._peers.pop(peer, None)

    def peer(self, name: str) -> Peer:
        """What a worker says of itself. ``memspan.PeerFailed`` when it is not there, ``memspan.Error``
        when its caches are of another kind."""
        with self._lock:
            known = self._peers.get(name)
        if known is not None:
            return known
        host, _, port = name.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _CONNECT_S) as connection:
                text = bytearray()
                while (part := connection.recv(1 << 16)) and len(text) <= _MOST_DIRECTORY:
                    text += part
        except (OSError, ValueError) as error:
            raise PeerFailed(f"worker {name} does not say where its cache is: {error}") from error
        if not text or len(text) > _MOST_DIRECTORY:
            raise PeerFailed(f"worker {name} has registered no cache yet")
        try:
            found = Peer(name, json.loads(text))
        except (ValueError, KeyError, TypeError) as error:
            raise PeerFailed(f"what answers at {name} is no worker of memspan: {error!r}") from error
        if found.digest != self._digest:
            raise Error(f"worker {name} has other caches: {self._differences(found)}")
        with self._lock:
            self._peers[name] = found
        return found

    def _differences(self, peer: Peer) -> str:
        names = sorted({*self._description, *peer.description})
        mine, theirs = self._description, peer.description
        return ", ".join(
            f"{name} is {mine.get(name)!r} here and {theirs.get(name)!r} there"
            for name in names
            if mine.get(name) != theirs.get(name)
        )

    def _check_blocks(self, blocks: Sequence[int], count: int, whose: str) -> None:
        if len(blocks) and (min(blocks) < 0 or max(blocks) >= count):
            raise ValueError(f"blocks {min(blocks)} to {max(blocks)} of {whose}, which has {count}")

    def pieces(
        self, peer: Peer, layers: Sequence[str], mine: Sequence[int], theirs: Sequence[int]
    ) -> Pieces:
        """Blocks ``mine`` here and ``theirs`` there, of layers that have the same heads on both sides.
        ValueError for blocks or layers that are not there."""
        if len(mine) != len(theirs):
            raise ValueError(f"there are {len(mine)} blocks here and {len(theirs)} there")
        self._check_blocks(mine, self._blocks, "this worker")
        self._check_blocks(theirs, peer.blocks, f"worker {peer.name}")
        made = Pieces()
        for layer in layers:
            for here, there in self._pairs(peer, layer):
                made.add(here, there, mine, theirs)
        return made

    def add_heads(
        self,
        made: Pieces,
        peer: Peer,
        layer: str,
        heads: tuple[int, int],
        mine: Sequence[int],
        theirs: Sequence[int],
    ) -> None:
        """As ``pieces``, for some heads (numbers of the model) of a layer that both have."""
        self._check_blocks(mine, self._blocks, "this worker")
        self._check_blocks(theirs, peer.blocks, f"worker {peer.name}")
        for here, there in zip(self.layers[layer], peer.layers[layer]):
            made.add(here, there, mine, theirs, heads)

    def _pairs(self, peer: Peer, layer: str) -> Iterator[tuple[Region, Region]]:
        if layer not in self.layers or layer not in peer.layers:
            where = "here" if layer not in self.layers else f"at worker {peer.name}"
            raise ValueError(f"there is no layer {layer} {where}")
        pairs = list(zip(self.layers[layer], peer.layers[layer]))
        if len(self.layers[layer]) != len(peer.layers[layer]):
            raise Error(
                f"blocks of layer {layer} have {len(self.layers[layer])} parts here and "
                f"{len(peer.layers[layer])} at worker {peer.name}"
            )
        for here, there in pairs:
            if (here.bytes, here.heads, here.first_head) != (there.bytes, there.heads, there.first_head):
                raise Error(
                    f"blocks of layer {layer} have {here.heads} heads of {here.bytes} bytes from head "
                    f"{here.first_head} on here, and {there.heads} of {there.bytes} from "
                    f"{there.first_head} on at worker {peer.name}"
                )
        yield from pairs

    # ---- moving

    def read(self, peer: str, pieces: Pieces) -> int:
        """From there to here; the bytes that came. ``memspan.PeerFailed`` when the worker is gone."""
        return self._move(self._engine.batch_transfer_sync_read, peer, pieces)

    def write(self, peer: str, pieces: Pieces) -> int:
        """From here to there, as ``read``."""
        return self._move(self._engine.batch_transfer_sync_write, peer, pieces)

    def _move(self, function: Any, peer: str, pieces: Pieces) -> int:
        here, there, sizes = pieces.arrays()
        if len(here) == 0:
            return 0
        if function(peer, here, there, sizes) != 0:
            failure = PeerFailed(common.get_last_err_msg(), common.get_last_err_code())
            self.forget(peer)
            raise failure
        return int(sizes.sum())

    def read_bytes(self, peer: str, here: int, there: int, size: int) -> None:
        """Into registered memory. ``memspan.PeerFailed`` when the worker is gone."""
        self._bytes(self._engine.transfer_sync_read, peer, here, there, size)

    def write_bytes(self, peer: str, here: int, there: int, size: int) -> None:
        """From registered memory, as ``read_bytes``."""
        self._bytes(self._engine.transfer_sync_write, peer, here, there, size)

    def _bytes(self, function: Any, peer: str, *arguments: int) -> None:
        if function(peer, *arguments) != 0:
            failure = PeerFailed(common.get_last_err_msg(), common.get_last_err_code())
            self.forget(peer)
            raise failure

    def push(self, peer: str, layer: str, mine: Sequence[int], theirs: Sequence[int]) -> None:
        """Blocks ``mine`` of a layer here to blocks ``theirs`` of a worker; they are there on
        return. ValueError for blocks that are not there, ``memspan.PeerFailed`` when the worker is gone."""
        self.write(peer, self.pieces(self.peer(peer), [layer], mine, theirs))

    def pull(
        self,
        peer: str,
        mine: Sequence[int],
        theirs: Sequence[int],
        layers: Sequence[str] | None = None,
    ) -> None:
        """Blocks ``theirs`` of a worker to blocks ``mine`` here, of all layers or some. Raises as
        ``push``."""
        chosen = list(self.layers) if layers is None else layers
        self.read(peer, self.pieces(self.peer(peer), chosen, mine, theirs))

    def tell(self, peer: str, text: str) -> None:
        """A message of up to 256 bytes, which comes after what was moved before. ValueError for a longer
        one, ``memspan.PeerFailed`` when the worker is gone."""
        message = text.encode()
        if len(message) > _MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes, allowed are {_MESSAGE_BYTES}")
        request = self._engine.prepare(
            TransferOpcode.Write,
            peer,
            [self._note.ctypes.data],
            [self.peer(peer).note],
            [_NOTE_BYTES],
        )
        try:
            if (
                request.set_message(message) != 0
                or request.post() != 0
                or request.wait(_PATIENCE_S * 1000) != 0
            ):
                raise PeerFailed(common.get_last_err_msg(), common.get_last_err_code())
        finally:
            request.destroy()

    def heard(self, timeout_ms: int = 0) -> list[tuple[str, str]]:
        """What others told since the last time, [(worker, text)]; waits so many milliseconds for the
        first."""
        messages = []
        while (message := self._engine.receive(timeout_ms)) is not None:
            messages.append((message[0], message[1].decode(errors="replace")))
            timeout_ms = 0
        return messages
