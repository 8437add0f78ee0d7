# SPDX-License-Identifier: Apache-2.0
"""Paged KV caches of workers, and moving blocks of them between workers.

A worker has, for each layer, a tensor of blocks (pages). Blocks are named by number, layers by name;
another worker reads their addresses and their layout once from the directory: text in the worker's
own registered memory, whose place requests carry with the worker's name. So only members of the
store find it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from memspan.connectors.kv_regions import Pieces, Region, regions_of
from memspan.connectors.worker_name import Place
from memspan.errors import Error, PeerFailed
from memspan.fabric import common
from memspan.fabric.engine import TransferEngine, TransferOpcode
from memspan.remedy import remedy

if TYPE_CHECKING:
    import torch

_NOTE_BYTES = 8
_SMEM_ERROR = -1
_MOST_DIRECTORY = 1 << 24
_PATIENCE_S = 30
_MESSAGE_BYTES = 256
_OTHER_CACHES = remedy(
    "kv-caches-differ",
    "The KV caches of the two engines have different layouts.",
    "Use the same model, data type, block size, attention backend and version in both engines (docs/engines.md).")


def _fail() -> None:
    """Raises what the last call of this thread failed with."""
    raise Error(common.get_last_err_msg(), common.get_last_err_code())


def digest(description: Mapping[str, Any]) -> str:
    """Digest of a cache's layout; equal descriptions have equal digests."""
    text = json.dumps(description, sort_keys=True).encode()
    return hashlib.blake2b(text, digest_size=16).hexdigest()


class Peer:
    """The contents of another worker's directory."""

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
        self._engine = TransferEngine()
        self._may_adopt = True
        role = "Both" if hosts_store else None
        if self._engine.initialize(store_url, host, "Both", 0, store_server_role=role) != 0:
            _fail()
        self.name = self._engine.session_id
        self._note = np.zeros(_NOTE_BYTES, np.uint8)
        self.register_memory(self._note.ctypes.data, _NOTE_BYTES)
        self._description = dict(description or {})
        self._digest = digest(self._description)
        self._tables: dict[str, int] = {}
        self.layers: dict[str, list[Region]] = {}
        self._blocks = 0
        self._directory = np.zeros(0, np.uint8)
        self._peers: dict[tuple[str, Place], Peer] = {}
        self._lock = threading.Lock()
        self._engine.set_peer_down_callback(self.forget)

    def register_memory(self, address: int, size: int, adopt: bool = False) -> None:
        """Others may read and write it from now on. ``adopt``: as ``TransferEngine.register_memory``,
        and by copies of the operating system if memory cannot be adopted. A system that refuses to
        adopt is asked once. ``memspan.Error``."""
        if adopt and self._may_adopt:
            try:
                code = self._engine.register_memory(address, size, adopt=True)
            except Error as error:  # after raise_on_error(True)
                code = error.code
            if code == 0:
                return
            self._may_adopt = code != _SMEM_ERROR
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
        them. ``shards``: which share of a layer's heads this worker has (0). ValueError as
        ``regions_of``, ``memspan.Error`` when they cannot be registered; none of them is then."""
        spans: dict[int, tuple[int, int]] = {}  # of each allocation, what is used
        layers = dict(self.layers)
        for name, tensor in caches.items():
            layers[name] = regions_of(tensor, blocks, (shards or {}).get(name, 0))
            storage = tensor.untyped_storage().data_ptr()
            start = tensor.data_ptr()
            last = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
            end = start + (last + 1) * tensor.element_size()
            known = spans.get(storage, (start, end))
            spans[storage] = (min(known[0], start), max(known[1], end))
        directory = {
            "description": self._description,
            "digest": self._digest,
            "layers": layers,
            "blocks": blocks,
            "note": self._note.ctypes.data,
            "tables": self._tables,
        }
        text = np.frombuffer(json.dumps(directory).encode(), np.uint8).copy()
        with contextlib.ExitStack() as undo:
            for start, end in spans.values():
                self.register_memory(start, end - start, adopt)
                undo.callback(self._engine.unregister_memory, start)
            self.register_memory(text.ctypes.data, text.nbytes)
            undo.pop_all()
        self.layers, self._blocks, self._directory = layers, blocks, text

    @property
    def directory(self) -> Place:
        """This worker's name. ValueError before ``register``."""
        if not self._directory.nbytes:
            raise ValueError(f"worker {self.name} has registered no cache yet")
        return Place(self._directory.ctypes.data, self._directory.nbytes)

    def close(self) -> None:
        """Others' transfers with this worker fail from now on."""
        self._engine.destroy()

    # ---- peers

    def forget(self, peer: str) -> None:
        """Its directory is read again, as after its restart."""
        with self._lock:
            self._peers = {at: known for at, known in self._peers.items() if at[0] != peer}

    def peer(self, name: str, directory: Place) -> Peer:
        """A worker's description of itself. ``memspan.PeerFailed`` when it does not run,
        ``memspan.Error`` when its caches are of another kind or the address has no directory."""
        with self._lock:
            known = self._peers.get((name, directory))
        if known is not None:
            return known
        text = self._read_text(name, directory)
        try:
            found = Peer(name, json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Error(f"what worker {name} has at {directory.address:#x} is not a directory: {error!r}") from error
        if found.digest != self._digest:
            raise Error(f"worker {name} has other caches: {self._differences(found)}{_OTHER_CACHES}")
        with self._lock:
            self._peers[name, directory] = found
        return found

    def _read_text(self, name: str, directory: Place) -> bytes:
        if not 0 < directory.size <= _MOST_DIRECTORY:
            raise Error(f"worker {name} has a directory of {directory.size} bytes, allowed are 1 to {_MOST_DIRECTORY}")
        text = np.zeros(directory.size, np.uint8)
        self.register_memory(text.ctypes.data, text.nbytes)
        try:
            self.read_bytes(name, text.ctypes.data, directory.address, directory.size)
        finally:
            self._engine.unregister_memory(text.ctypes.data)
        return text.tobytes()

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

    def add_heads(
        self,
        made: Pieces,
        peer: Peer,
        layer: str,
        heads: tuple[int, int],
        mine: Sequence[int],
        theirs: Sequence[int],
    ) -> None:
        """To ``made``: blocks ``mine`` here and ``theirs`` there, for some heads (numbers of the model) of a
        layer that both have. ValueError for blocks that do not exist."""
        self._check_blocks(mine, self._blocks, "this worker")
        self._check_blocks(theirs, peer.blocks, f"worker {peer.name}")
        for here, there in zip(self.layers[layer], peer.layers[layer]):
            made.add(here, there, mine, theirs, heads)

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

    def tell(self, peer: Peer, text: str) -> None:
        """A message of up to 256 bytes, which comes after what was moved before. ValueError for a longer
        one, ``memspan.PeerFailed`` when the worker is gone."""
        message = text.encode()
        if len(message) > _MESSAGE_BYTES:
            raise ValueError(f"a message of {len(message)} bytes, allowed are {_MESSAGE_BYTES}")
        request = self._engine.prepare(
            TransferOpcode.Write,
            peer.name,
            [self._note.ctypes.data],
            [peer.note],
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
        """Messages of others since the last call, [(worker, text)]; waits so many milliseconds for
        the first."""
        messages = []
        while (message := self._engine.receive(timeout_ms)) is not None:
            messages.append((message[0], message[1].decode(errors="replace")))
            timeout_ms = 0
        return messages
