# SPDX-License-Identifier: Apache-2.0
"""Paged KV caches of workers, and moving blocks of them between workers.

A worker has, for each layer, a tensor of blocks (pages). Blocks are named by number, layers by name;
where they lie another worker learns once, from the directory that each worker serves at the port of
its own name. What is moved is bytes: both sides have the same layers, types and shapes of a block.
"""

import json
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from memspan.errors import Error, PeerFailed
from memspan.fabric import common
from memspan.fabric.engine import TransferEngine, TransferOpcode

if TYPE_CHECKING:
    import torch
    from numpy.typing import NDArray

_NOTE_BYTES = 8
_MOST_DIRECTORY = 1 << 24
_PATIENCE_S = 30


def regions_of(tensor: "torch.Tensor", blocks: int) -> list[tuple[int, int, int]]:
    """[(address of block 0, bytes between blocks, bytes of a block)] of a tensor that has the blocks
    in its first dimension, or keys and values there and the blocks in the second. ValueError for other
    shapes, and for blocks that are not contiguous."""
    if tensor.shape[0] == blocks:
        parts = [tensor]
    elif tensor.dim() > 1 and tensor.shape[0] == 2 and tensor.shape[1] == blocks:
        parts = [tensor[0], tensor[1]]
    else:
        raise ValueError(
            f"a cache of shape {tuple(tensor.shape)} has {blocks} blocks neither in its first "
            "dimension nor in its second"
        )
    found = []
    for part in parts:
        if not part[0].is_contiguous():
            raise ValueError(f"blocks of a cache of strides {tensor.stride()} are not contiguous")
        element = part.element_size()
        found.append((part.data_ptr(), part.stride(0) * element, part[0].numel() * element))
    return found


class _Answer(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        self.request.settimeout(_PATIENCE_S)
        server: Any = self.server
        self.request.sendall(server.directory)


class _Directory(socketserver.ThreadingTCPServer):
    daemon_threads = True
    directory = b""


class KvWorker:
    """One worker's caches and its endpoint, over the store at ``store_url``; its name is ``host`` and a
    free port. Thread-safe. ``memspan.Error`` when it cannot start."""

    def __init__(self, store_url: str, host: str, hosts_store: bool = False) -> None:
        self._server = _Directory((host, 0), _Answer)
        self.name = f"{host}:{self._server.server_address[1]}"
        self._engine = TransferEngine()
        role = "Both" if hosts_store else None
        if self._engine.initialize(store_url, self.name, "Both", 0, store_server_role=role) != 0:
            self._server.server_close()
            raise Error(common.get_last_err_msg(), common.get_last_err_code())
        self._note = np.zeros(_NOTE_BYTES, np.uint8)
        self._register([self._note.ctypes.data], [_NOTE_BYTES])
        self._layers: dict[str, list[tuple[int, int, int]]] = {}
        self._blocks = 0
        self._peers: dict[str, dict[str, Any]] = {}
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._engine.set_peer_down_callback(self._forget)

    def _register(self, addresses: list[int], sizes: list[int]) -> None:
        if self._engine.batch_register_memory(addresses, sizes) != 0:
            raise Error(common.get_last_err_msg(), common.get_last_err_code())

    def register(self, caches: "Mapping[str, torch.Tensor]", blocks: int) -> None:
        """The layers' tensors of so many blocks, by name; from now on other workers may read and write
        them. ValueError as ``regions_of``, ``memspan.Error`` when they cannot be registered."""
        addresses, sizes = [], []
        self._blocks = blocks
        for name, tensor in caches.items():
            self._layers[name] = regions_of(tensor, blocks)
            for base, stride, bytes_ in self._layers[name]:
                addresses.append(base)
                sizes.append(stride * (blocks - 1) + bytes_)
        self._register(addresses, sizes)
        directory = {"layers": self._layers, "blocks": blocks, "note": self._note.ctypes.data}
        self._server.directory = json.dumps(directory).encode()
        self._thread.start()

    def close(self) -> None:
        """Others' transfers with this worker fail from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._engine.destroy()

    @property
    def layers(self) -> list[str]:
        """The layers' names."""
        return list(self._layers)

    # ---- peers

    def _forget(self, peer: str) -> None:
        with self._lock:
            self._peers.pop(peer, None)

    def _directory_of(self, peer: str) -> dict[str, Any]:
        with self._lock:
            known = self._peers.get(peer)
        if known is not None:
            return known
        host, port = peer.rsplit(":", 1)
        try:
            with socket.create_connection((host, int(port)), _PATIENCE_S) as connection:
                text = b"".join(iter(lambda: connection.recv(1 << 16), b""))
        except OSError as error:
            raise PeerFailed(f"worker {peer} does not say where its cache is: {error}") from error
        if not text or len(text) > _MOST_DIRECTORY:
            raise PeerFailed(f"worker {peer} has registered no cache yet")
        directory = json.loads(text)
        if set(directory["layers"]) != set(self._layers):
            raise Error(f"worker {peer} has other layers: {sorted(directory['layers'])}")
        for name, mine in self._layers.items():
            sizes = [bytes_ for _, _, bytes_ in mine]
            theirs = [bytes_ for _, _, bytes_ in directory["layers"][name]]
            if sizes != theirs:
                raise Error(
                    f"blocks of layer {name} have {sizes} bytes here, and {theirs} at worker {peer}"
                )
        with self._lock:
            self._peers[peer] = directory
        return directory

    def _pieces(
        self, peer: str, layers: Sequence[str], mine: Sequence[int], theirs: Sequence[int]
    ) -> "Iterator[NDArray[np.uint64]]":
        """Addresses here, addresses there and sizes of the blocks of some layers."""
        own, others = np.asarray(mine, np.int64), np.asarray(theirs, np.int64)
        if own.shape != others.shape:
            raise ValueError(f"there are {len(own)} blocks here and {len(others)} there")
        directory = self._directory_of(peer)
        if len(own) and (own.min() < 0 or own.max() >= self._blocks):
            raise ValueError(
                f"blocks {own.min()} to {own.max()} of this worker, which has {self._blocks}"
            )
        if len(others) and (others.min() < 0 or others.max() >= directory["blocks"]):
            raise ValueError(
                f"blocks {others.min()} to {others.max()} of worker {peer}, which has "
                f"{directory['blocks']}"
            )
        here, there, sizes = [], [], []
        for layer in layers:
            for at, peers in zip(self._layers[layer], directory["layers"][layer]):
                here.append(at[0] + own * at[1])
                there.append(peers[0] + others * peers[1])
                sizes.append(np.full(len(own), at[2], np.int64))
        return (np.concatenate(arrays).astype(np.uint64) for arrays in (here, there, sizes))

    # ---- moving blocks

    def _move(
        self,
        function: Callable[..., int],
        peer: str,
        layers: Sequence[str],
        mine: Sequence[int],
        theirs: Sequence[int],
    ) -> None:
        if len(mine) == 0:
            return
        here, there, sizes = self._pieces(peer, layers, mine, theirs)
        if function(peer, here, there, sizes) != 0:
            raise PeerFailed(common.get_last_err_msg(), common.get_last_err_code())

    def push(self, peer: str, layer: str, mine: Sequence[int], theirs: Sequence[int]) -> None:
        """Blocks ``mine`` of a layer here to blocks ``theirs`` of a worker; they are there on
        return. ValueError for blocks that are not there, ``memspan.PeerFailed`` when the worker is gone."""
        self._move(self._engine.batch_transfer_sync_write, peer, [layer], mine, theirs)

    def pull(
        self,
        peer: str,
        mine: Sequence[int],
        theirs: Sequence[int],
        layers: Sequence[str] | None = None,
    ) -> None:
        """Blocks ``theirs`` of a worker to blocks ``mine`` here, of all layers or some. Raises as
        ``push``."""
        chosen = self.layers if layers is None else layers
        self._move(self._engine.batch_transfer_sync_read, peer, chosen, mine, theirs)

    def tell(self, peer: str, text: str) -> None:
        """A message of up to 256 bytes, which comes after what was moved before. ``memspan.PeerFailed`` when
        the worker is gone."""
        request = self._engine.prepare(
            TransferOpcode.Write,
            peer,
            [self._note.ctypes.data],
            [self._directory_of(peer)["note"]],
            [_NOTE_BYTES],
        )
        try:
            if request.set_message(text.encode()) != 0 or request.post() != 0 or request.wait(_PATIENCE_S * 1000) != 0:
                raise PeerFailed(common.get_last_err_msg(), common.get_last_err_code())
        finally:
            request.destroy()

    def heard(self, timeout_ms: int = 0) -> list[tuple[str, str]]:
        """What others told since the last time, [(worker, text)]; waits so many milliseconds for the
        first."""
        messages = []
        while (message := self._engine.receive(timeout_ms)) is not None:
            messages.append((message[0], message[1].decode()))
            timeout_ms = 0
        return messages
