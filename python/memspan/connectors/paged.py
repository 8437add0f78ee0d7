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

import numpy as np
from memspan.errors import Error, PeerFailed
from memspan.fabric import common
from memspan.fabric.engine import TransferEngine, TransferOpcode

_NOTE_BYTES = 8
_MOST_DIRECTORY = 1 << 24
_PATIENCE_S = 30


def regions_of(tensor, blocks):
    """[(address of block 0, bytes between blocks, bytes of a block)] of a tensor that has the blocks
    in its first dimension, or keys and values there and the blocks in the second."""
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
    def handle(self):
        self.request.settimeout(_PATIENCE_S)
        self.request.sendall(self.server.directory)


class _Directory(socketserver.ThreadingTCPServer):
    allow_reuse_address = True  # the engine keeps the port
    daemon_threads = True
    directory = b""


class KvWorker:
    """One worker's caches and its endpoint. Thread-safe."""

    def __init__(self, store_url, host, hosts_store=False):
        self._engine = TransferEngine()
        port = self._engine.get_rpc_port()
        self.name = f"{host}:{port}"
        role = "Both" if hosts_store else None
        if self._engine.initialize(store_url, self.name, "Both", 0, store_server_role=role) != 0:
            raise Error(common.get_last_err_msg(), common.get_last_err_code())
        self._note = np.zeros(_NOTE_BYTES, np.uint8)
        self._register([self._note.ctypes.data], [_NOTE_BYTES])
        self._layers = {}
        self._blocks = 0
        self._peers = {}
        self._lock = threading.Lock()
        self._server = _Directory((host, port), _Answer)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._engine.set_peer_down_callback(self._forget)

    def _register(self, addresses, sizes):
        if self._engine.batch_register_memory(addresses, sizes) != 0:
            raise Error(common.get_last_err_msg(), common.get_last_err_code())

    def register(self, caches, blocks):
        """The layers' tensors, by name; from now on other workers may read and write them."""
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

    def close(self):
        """Others' transfers with this worker fail from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()
        self._engine.destroy()

    @property
    def layers(self):
        return list(self._layers)

    # ---- peers

    def _forget(self, peer):
        with self._lock:
            self._peers.pop(peer, None)

    def _directory_of(self, peer):
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

    def _pieces(self, peer, layers, mine, theirs):
        """Addresses here, addresses there and sizes of the blocks of some layers."""
        mine, theirs = np.asarray(mine, np.int64), np.asarray(theirs, np.int64)
        if mine.shape != theirs.shape:
            raise ValueError(f"there are {len(mine)} blocks here and {len(theirs)} there")
        directory = self._directory_of(peer)
        if len(mine) and (mine.min() < 0 or mine.max() >= self._blocks):
            raise ValueError(
                f"blocks {mine.min()} to {mine.max()} of this worker, which has {self._blocks}"
            )
        if len(theirs) and (theirs.min() < 0 or theirs.max() >= directory["blocks"]):
            raise ValueError(
                f"blocks {theirs.min()} to {theirs.max()} of worker {peer}, which has "
                f"{directory['blocks']}"
            )
        here, there, sizes = [], [], []
        for layer in layers:
            for own, other in zip(self._layers[layer], directory["layers"][layer]):
                here.append(own[0] + mine * own[1])
                there.append(other[0] + theirs * other[1])
                sizes.append(np.full(len(mine), own[2], np.int64))
        return (np.concatenate(arrays).astype(np.uint64) for arrays in (here, there, sizes))

    # ---- moving blocks

    def _move(self, function, peer, layers, mine, theirs):
        if len(mine) == 0:
            return
        here, there, sizes = self._pieces(peer, layers, mine, theirs)
        if function(peer, here, there, sizes) != 0:
            raise PeerFailed(common.get_last_err_msg(), common.get_last_err_code())

    def push(self, peer, layer, mine, theirs):
        """Blocks ``mine`` of a layer here to blocks ``theirs`` of a worker; they are there on
        return."""
        self._move(self._engine.batch_transfer_sync_write, peer, [layer], mine, theirs)

    def pull(self, peer, mine, theirs, layers=None):
        """Blocks ``theirs`` of a worker to blocks ``mine`` here, of all layers or some."""
        chosen = self.layers if layers is None else layers
        self._move(self._engine.batch_transfer_sync_read, peer, chosen, mine, theirs)

    def tell(self, peer, text):
        """A message of up to 256 bytes, which comes after what was moved before."""
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

    def heard(self, timeout_ms=0):
        """What others told since the last time: [(worker, text)]."""
        messages = []
        while (message := self._engine.receive(timeout_ms)) is not None:
            messages.append((message[0], message[1].decode()))
            timeout_ms = 0
        return messages
