# SPDX-License-Identifier: Apache-2.0
"""A KV connector for vLLM (v1 interface), for prefill and decode in separate processes of a host.

    --kv-transfer-config '{"kv_connector": "MemspanConnector",
      "kv_connector_module_path": "memspan.connectors.vllm", "kv_role": "kv_both",
      "kv_connector_extra_config": {"store_url": "tcp://127.0.0.1:8572", "form": "pull"}}'

form "pull": the prefill worker keeps a request's blocks until the decode worker has read them.
form "push": the decode worker's blocks are chosen first, and the prefill worker writes each layer
there as soon as it is computed, in one step (no chunked prefill).

What travels with a request between the two (``kv_transfer_params``) is small: the other worker's
name, block numbers, and what the numbers mean (tokens of a block, tokens of the prompt). Where that differs
between the two, or a worker has too few blocks, or a transfer fails, the request's blocks are reported as
not loaded, and vLLM fails or recomputes the request (``kv_load_failure_policy``).
"""

import dataclasses
import inspect
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from memspan.connectors.paged import KvWorker
from memspan.errors import Error
from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
)

if TYPE_CHECKING:
    import torch

_USUAL_STORE = "tcp://127.0.0.1:8572"
_FORMS = ("pull", "push")


@dataclasses.dataclass
class Transfer:
    """One request's blocks here, and whose they are or become."""

    blocks: list[int]
    peer: str
    peer_blocks: list[int]
    peer_request: str  # what the other engine calls the request
    failure: str = ""  # why nothing is to be moved


@dataclasses.dataclass
class Metadata(KVConnectorMetadata):
    """What the scheduler tells the worker in a step."""

    to_pull: dict[str, Transfer] = dataclasses.field(default_factory=dict)  # by request id
    to_push: dict[str, Transfer] = dataclasses.field(default_factory=dict)
    to_receive: dict[str, list[int]] = dataclasses.field(default_factory=dict)  # blocks


class MemspanConnector(KVConnectorBase_V1):
    """Both halves, of which a process uses the one of its role. vLLM calls it, and its documentation of
    KVConnectorBase_V1 says when. ValueError for another form, ``memspan.Error`` when the worker cannot
    start."""

    def __init__(self, vllm_config: Any, role: KVConnectorRole, kv_cache_config: Any = None) -> None:
        # Older generations of vLLM have two arguments.
        if "kv_cache_config" in inspect.signature(KVConnectorBase_V1.__init__).parameters:
            super().__init__(vllm_config, role, kv_cache_config)  # type: ignore[call-arg]
        else:
            super().__init__(vllm_config, role)
        transfer = vllm_config.kv_transfer_config
        extra = transfer.kv_connector_extra_config or {}
        form = extra.get("form", "pull")
        if form not in _FORMS:
            raise ValueError(f'form is "{form}", allowed are {", ".join(_FORMS)}')
        if role == KVConnectorRole.SCHEDULER:
            self._half: Any = _Scheduler(form, vllm_config.cache_config.block_size)
        else:
            self._half = _Worker(
                extra.get("store_url", _USUAL_STORE),
                extra.get("host", "127.0.0.1"),
                extra.get("host_store", True),
                vllm_config.cache_config.num_gpu_blocks
                if kv_cache_config is None
                else kv_cache_config.num_blocks,
            )

    # ---- the scheduler's

    def set_xfer_handshake_metadata(self, metadata: Mapping[int, Any]) -> None:
        """What the workers' ``get_handshake_metadata`` gave, by rank; requests carry it to the other
        engine. One worker an engine: ValueError for several."""
        if len(metadata) != 1:
            raise ValueError(f"there are {len(metadata)} workers, allowed is 1")
        self._half.worker = next(iter(metadata.values()))

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        """(tokens of the prompt that come from elsewhere, whether they come while others run)."""
        return self._half.matched(request, num_computed_tokens)

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        """The request has these blocks, the last of which so many tokens will fill. ValueError for
        a model with several groups of caches."""
        groups = blocks.get_block_ids()
        if len(groups) != 1:
            raise ValueError(f"there are {len(groups)} groups of caches, allowed is 1")
        self._half.allocated(request, groups[0], num_external_tokens)

    def build_connector_meta(self, scheduler_output: Any) -> Metadata:
        """What the worker has to do in the next step."""
        del scheduler_output
        return self._half.metadata()

    def request_finished(
        self, request: Any, block_ids: Sequence[int]
    ) -> tuple[bool, dict[str, Any] | None]:
        """(whether the blocks are needed on, what the decode engine needs to fetch them)."""
        return self._half.finished(request, block_ids)

    # ---- the worker's

    def register_kv_caches(self, kv_caches: "Mapping[str, torch.Tensor]") -> None:
        """The caches by layer, which other workers may read and write from now on."""
        self._half.worker.register(kv_caches, self._half.blocks)

    def get_handshake_metadata(self) -> str:
        """The worker's name."""
        return self._half.worker.name

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Begins to read what this step's metadata names, on threads."""
        del forward_context, kwargs
        self._half.start(self._get_connector_metadata())

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing to wait for."""
        del layer_name  # a request runs only after get_finished() named it

    def save_kv_layer(
        self, layer_name: str, kv_layer: "torch.Tensor", attn_metadata: Any, **kwargs: Any
    ) -> None:
        """Writes a layer's blocks to where this step's metadata says; they are there on return."""
        del kv_layer, attn_metadata, kwargs
        self._half.save(layer_name, self._get_connector_metadata())

    def wait_for_save(self) -> None:
        """All layers are written: tells who waits for them."""
        self._half.saved(self._get_connector_metadata())

    def get_finished(
        self, finished_req_ids: set[str]
    ) -> tuple[set[str] | None, set[str] | None]:
        """(requests whose blocks may be given back, requests whose blocks have come)."""
        return self._half.finished(finished_req_ids)

    def get_block_ids_with_load_errors(self) -> set[int]:
        """Blocks that did not come, since the last time."""
        return self._half.take_errors()

    def shutdown(self) -> None:
        """Ends it; others' transfers with this worker fail from now on."""
        self._half.close()


class _Scheduler:
    def __init__(self, form, block_size):
        self.worker = ""
        self._form = form
        self._block_size = block_size
        self._next = Metadata()

    @staticmethod
    def _params(request):
        return request.kv_transfer_params or {}

    def matched(self, request, computed):
        """How many tokens come from elsewhere, and that they come while others run."""
        params = self._params(request)
        if not (params.get("do_remote_prefill") or params.get("do_remote_push")):
            return 0, False
        return max(len(request.prompt_token_ids) - computed, 0), True

    def _about(self, prefix, request, blocks):
        """What the other engine has to know of a request's blocks here."""
        return {
            f"{prefix}_worker": self.worker,
            f"{prefix}_block_ids": list(blocks),
            f"{prefix}_request_id": request.request_id,
            f"{prefix}_block_size": self._block_size,
            f"{prefix}_prompt_tokens": len(request.prompt_token_ids),
        }

    def _transfer(self, prefix, request, blocks, tokens):
        """Of the blocks of the prompt's last tokens, to or from the engine that told of itself."""
        params = self._params(request)
        prompt = len(request.prompt_token_ids)
        needed, count = -(-prompt // self._block_size), -(-tokens // self._block_size)
        theirs = params[f"{prefix}_block_ids"]
        failure = ""
        if params.get(f"{prefix}_block_size") != self._block_size:
            failure = (
                f"blocks have {self._block_size} tokens here, and "
                f"{params.get(f'{prefix}_block_size')} in the other engine"
            )
        elif params.get(f"{prefix}_prompt_tokens") != prompt:
            failure = (
                f"the prompt has {prompt} tokens here, and "
                f"{params.get(f'{prefix}_prompt_tokens')} in the other engine"
            )
        elif min(len(blocks), len(theirs)) < needed:
            failure = (
                f"there are {len(blocks)} blocks here and {len(theirs)} in the other engine; the "
                f"prompt needs {needed}"
            )
        first = max(needed - count, 0)
        return Transfer(
            list(blocks[first:needed]) or list(blocks),
            params[f"{prefix}_worker"],
            [] if failure else list(theirs[first:needed]),
            params[f"{prefix}_request_id"],
            failure,
        )

    def allocated(self, request, blocks, tokens):
        params = self._params(request)
        if params.get("do_remote_prefill"):
            # The last ones: what comes before is in this engine's cache already.
            transfer = self._transfer("remote", request, blocks, tokens)
            if tokens == 0:
                transfer.blocks = transfer.peer_blocks = []
            self._next.to_pull[request.request_id] = transfer
            params["do_remote_prefill"] = False  # once
        elif params.get("do_remote_push"):
            # What the router hands to the prefill engine.
            params.update(self._about("decode", request, blocks))
            self._next.to_receive[request.request_id] = list(blocks)
            params["do_remote_push"] = False
        elif params.get("decode_worker") not in (None, self.worker):
            self._next.to_push[request.request_id] = self._transfer(
                "decode", request, blocks, len(request.prompt_token_ids)
            )

    def metadata(self):
        made, self._next = self._next, Metadata()
        return made

    def finished(self, request, blocks):
        """Whether the blocks are needed on, and what the decode engine needs to fetch them."""
        params = self._params(request)
        if not params.get("do_remote_decode") or self._form == "push":
            return False, None
        return True, {"do_remote_prefill": True, **self._about("remote", request, blocks)}

    def close(self):
        pass


class _Worker:
    def __init__(self, store_url, host, hosts_store, blocks):
        self.blocks = blocks
        self.worker = KvWorker(store_url, host, hosts_store)
        self._lock = threading.Lock()
        self._received = set()  # requests whose blocks have come
        self._sent = set()  # requests whose blocks others have read
        self._errors = set()  # blocks that did not come
        self._expected = {}  # blocks of requests that others push, by request
        self._failed = set()  # requests that nobody will push, and whose blocks are not known yet
        self._pulls = []

    def start(self, metadata):
        with self._lock:
            self._expected.update(metadata.to_receive)
            for request in self._failed & set(metadata.to_receive):
                self._fail(request)
        self._pulls = [pull for pull in self._pulls if pull.is_alive()]
        for request, transfer in metadata.to_pull.items():
            pull = threading.Thread(target=self._pull, args=(request, transfer))
            pull.start()
            self._pulls.append(pull)

    def _pull(self, request, transfer):
        try:
            if transfer.failure:
                raise ValueError(transfer.failure)
            self.worker.pull(transfer.peer, transfer.blocks, transfer.peer_blocks)
        except Exception as error:  # noqa: BLE001: the engine decides what becomes of the request
            print(f"memspan: request {request}: {error}", file=sys.stderr, flush=True)
            with self._lock:
                self._errors.update(transfer.blocks)
        # Read or not, the other engine need not keep them any more.
        self._tell(transfer, "read")
        with self._lock:
            self._received.add(request)

    def _tell(self, transfer, word):
        try:
            self.worker.tell(transfer.peer, f"{word} {transfer.peer_request}")
        except Exception as error:  # noqa: BLE001: it is gone, and needs to know nothing
            print(f"memspan: worker {transfer.peer}: {error}", file=sys.stderr, flush=True)

    def save(self, layer, metadata):
        for request, transfer in list(metadata.to_push.items()):
            try:
                if transfer.failure:
                    raise ValueError(transfer.failure)
                self.worker.push(transfer.peer, layer, transfer.blocks, transfer.peer_blocks)
            except (Error, ValueError) as error:
                print(f"memspan: request {request}: {error}", file=sys.stderr, flush=True)
                del metadata.to_push[request]
                self._tell(transfer, "failed")

    def saved(self, metadata):
        for transfer in metadata.to_push.values():
            self._tell(transfer, "written")

    def _fail(self, request):
        """A request whose blocks are expected will not be pushed. With the lock."""
        self._failed.discard(request)
        self._errors.update(self._expected.pop(request))
        self._received.add(request)

    def _hear(self, word, request):
        """What another worker told. With the lock."""
        if word == "read":
            self._sent.add(request)
        elif word == "written":
            self._expected.pop(request, None)
            self._received.add(request)
        elif request in self._expected:
            self._fail(request)
        else:  # it comes before the step that begins the request here
            self._failed.add(request)

    def finished(self, request_ids):
        """(requests whose blocks may be given back, requests whose blocks have come)"""
        del request_ids
        heard = [text.split(" ", 1) for _, text in self.worker.heard()]
        with self._lock:
            for word, request in heard:
                self._hear(word, request)
            sent, self._sent = self._sent, set()
            received, self._received = self._received, set()
        return sent or None, received or None

    def take_errors(self):
        with self._lock:
            errors, self._errors = self._errors, set()
        return errors

    def close(self):
        for pull in self._pulls:
            pull.join()
        self.worker.close()
