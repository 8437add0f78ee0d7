# SPDX-License-Identifier: Apache-2.0
"""The half of the connector that lives in an engine's scheduler (docs/design/0023). Imports no vLLM."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

from memspan.connectors.leases import Lease, LeasePool
from memspan.connectors.worker_name import WorkerName
from memspan.remedy import remedy

_NULL = 0  # the block that stands for one that is not there
_OTHER_PROMPT = remedy(
    "kv-prompt-differs",
    "The request's kv_transfer_params were made for another prompt; the engine computes it instead.",
    "Let the proxy pass kv_transfer_params on unchanged, with the same prompt, to an engine of the same model.")


@dataclasses.dataclass(frozen=True)
class Group:
    """A group of layers that share a list of blocks."""

    layers: tuple[str, ...]
    block_size: int  # tokens
    window: int = 0  # tokens that are looked back at; 0: all

    def first_needed(self, tokens: int) -> int:
        """The first block that tokens after so many ones look at."""
        return max(tokens - self.window, 0) // self.block_size if self.window else 0

    def blocks_of(self, tokens: int) -> int:
        """How many blocks so many tokens have."""
        return -(-tokens // self.block_size)


@dataclasses.dataclass
class Source:
    """Whose blocks, and under which lease."""

    workers: list[WorkerName]
    lease: Lease


@dataclasses.dataclass
class Pull:
    """The blocks that each worker reads for a request: of each group, local and remote block
    numbers."""

    source: Source | None
    mine: list[list[int]] = dataclasses.field(default_factory=list)
    theirs: list[list[int]] = dataclasses.field(default_factory=list)
    failure: str = ""  # why nothing is to be read


@dataclasses.dataclass
class Orders:
    """The scheduler's data for the workers in a step."""

    pulls: dict[str, Pull] = dataclasses.field(default_factory=dict)  # by request
    leases: dict[str, Lease] = dataclasses.field(default_factory=dict)  # to begin, by request
    hold: dict[str, Source] = dataclasses.field(default_factory=dict)  # to keep alive, by request
    release: dict[str, Source] = dataclasses.field(default_factory=dict)  # will not be read
    ends_leases: bool = False  # all of this engine


class BadParams(ValueError):
    """The request's kv_transfer_params cannot be used."""


def _of_type(params: dict[str, Any], name: str, kind: type) -> Any:
    value = params.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        said = "is missing" if value is None else f"is {value!r}"
        raise BadParams(f"kv_transfer_params: {name} {said}, allowed is {kind.__name__}")
    return value


def _list_of(params: dict[str, Any], name: str, kind: type) -> list[Any]:
    values = _of_type(params, name, list)
    for value in values:
        if not isinstance(value, kind) or isinstance(value, bool):
            raise BadParams(f"kv_transfer_params: {name} has {value!r}, allowed are {kind.__name__}")
    return values


def source_of(params: dict[str, Any]) -> Source:
    """The engine and lease that a request's params name. BadParams."""
    workers = _list_of(params, "remote_workers", str)
    if not workers:
        raise BadParams("kv_transfer_params: remote_workers is empty")
    try:
        named = [WorkerName.parse(worker) for worker in workers]
        return Source(named, Lease.parse(params.get("remote_lease")))
    except ValueError as error:
        raise BadParams(f"kv_transfer_params: {error}") from error


def prompt_digest(request: Any) -> str:
    """Digest of everything that the KV blocks of a request's prompt depend on, except the model."""
    made = hashlib.blake2b(digest_size=16)
    tokens = getattr(request, "prompt_token_ids", None)
    if tokens is not None:
        made.update(b"".join(int(token).to_bytes(8, "little", signed=True) for token in tokens))
    embeds = getattr(request, "prompt_embeds", None)
    if embeds is not None:
        made.update(embeds.detach().cpu().contiguous().view(dtype=_bytes_type()).numpy().tobytes())
    lora = getattr(request, "lora_request", None)
    made.update(repr(getattr(lora, "lora_name", None)).encode())
    made.update(repr(getattr(request, "cache_salt", None)).encode())
    for feature in getattr(request, "mm_features", None) or ():
        place = feature.mm_position
        made.update(repr((feature.identifier, place.offset, place.length)).encode())
    return made.hexdigest()


def _bytes_type() -> Any:
    import torch

    return torch.uint8


class Scheduler:
    """``groups`` as the engine's block lists have them. Not thread-safe, as the engine's scheduler is
    one thread."""

    def __init__(self, groups: Sequence[Group], gives: bool = True, takes: bool = True) -> None:
        self._groups = list(groups)
        self._gives = gives  # whether it is a producer
        self._takes = takes
        self._leases = LeasePool()
        self._orders = Orders()
        self.workers: list[str] = []
        self.warnings: list[str] = []  # for the log

    @staticmethod
    def _params(request: Any) -> dict[str, Any]:
        return request.kv_transfer_params or {}

    def _wants_blocks(self, request: Any) -> bool:
        return bool(self._params(request).get("do_remote_prefill"))

    # ---- a request comes

    def arrived(self, request: Any) -> None:
        """Keeps its lease alive from now on. Invalid params are reported when the request is
        scheduled."""
        if not self._wants_blocks(request):
            return
        source = self._source_or_none(self._params(request))
        if source is not None:
            self._orders.hold[request.request_id] = source

    def matched(self, request: Any, computed: int) -> tuple[int, bool]:
        """(tokens of the prompt that come from elsewhere, whether they come while others run)."""
        if not self._wants_blocks(request):
            return 0, False
        tokens = max(request.num_prompt_tokens - computed, 0)
        return tokens, tokens > 0

    def allocated(self, request: Any, blocks: Sequence[Sequence[int]], tokens: int) -> None:
        """The request has these blocks of each group, and the last so many tokens of its prompt come from
        elsewhere: 0 when all are computed here."""
        if not self._wants_blocks(request):
            return
        params = self._params(request)
        params["do_remote_prefill"] = False  # once
        if tokens == 0:
            self._let_go(request)
            return
        try:
            pull = self._pull(request, blocks, tokens)
        except BadParams as error:
            computed = request.num_prompt_tokens - tokens
            mine = [
                list(ids)[computed // group.block_size :]
                for ids, group in zip(blocks, self._groups)
            ]
            pull = Pull(self._source_or_none(params), mine, failure=str(error))
        self._orders.pulls[request.request_id] = pull

    def _source_or_none(self, params: dict[str, Any]) -> Source | None:
        try:
            return source_of(params)
        except BadParams:
            return None

    def _pull(self, request: Any, blocks: Sequence[Sequence[int]], tokens: int) -> Pull:
        params = self._params(request)
        if not self._takes:
            raise BadParams("this engine is a kv_producer, and reads no blocks")
        source = source_of(params)
        theirs = _list_of(params, "remote_block_ids", list)
        prompt = request.num_prompt_tokens
        count = _of_type(params, "remote_num_tokens", int)
        if count != prompt:
            raise BadParams(f"the prompt has {prompt} tokens here, and {count} in the other engine{_OTHER_PROMPT}")
        if _of_type(params, "remote_prompt", str) != prompt_digest(request):
            raise BadParams(f"the prompt (tokens, LoRA, cache salt, other inputs) differs in the other engine{_OTHER_PROMPT}")
        if len(theirs) != len(self._groups) or len(blocks) != len(self._groups):
            raise BadParams(
                f"there are {len(blocks)} groups of caches here and {len(theirs)} in the other engine"
            )
        pull = Pull(source)
        for number, group in enumerate(self._groups):
            here, there = self._needed(group, list(blocks[number]), theirs[number], prompt, tokens)
            pull.mine.append(here)
            pull.theirs.append(there)
        return pull

    def _needed(
        self, group: Group, mine: list[int], theirs: list[Any], prompt: int, tokens: int
    ) -> tuple[list[int], list[int]]:
        """The blocks of a group that tokens from elsewhere fill, and that are looked at later."""
        end = group.blocks_of(prompt)
        first = max((prompt - tokens) // group.block_size, group.first_needed(prompt))
        if not all(isinstance(block, int) and block >= 0 for block in theirs):
            raise BadParams("kv_transfer_params: remote_block_ids are numbers of blocks")
        if min(len(mine), len(theirs)) < end:
            raise BadParams(
                f"there are {len(mine)} blocks here and {len(theirs)} in the other engine; the prompt "
                f"needs {end}"
            )
        here, there = mine[first:end], list(theirs[first:end])
        if _NULL in there or _NULL in here:
            raise BadParams("a block of the prompt's window is missing")
        return here, there

    # ---- a request ends

    def _let_go(self, request: Any) -> None:
        """Its blocks elsewhere will not be read."""
        source = self._source_or_none(self._params(request))
        self._orders.hold.pop(request.request_id, None)
        if source is not None:
            self._orders.release[request.request_id] = source

    def finished(
        self, request: Any, blocks: Sequence[Sequence[int]], is_complete: bool
    ) -> tuple[bool, dict[str, Any] | None]:
        """(whether the blocks are needed on, what the other engine needs to read them).
        ``is_complete``: the prompt was computed, and the request was not aborted."""
        params = self._params(request)
        if self._wants_blocks(request):  # it ends before it was scheduled
            params["do_remote_prefill"] = False
            self._let_go(request)
        if not params.get("do_remote_decode") or not is_complete:
            return False, None
        if not self._gives:
            self.warnings.append("a request asks to be read, and this engine is a kv_consumer")
            return False, None
        tokens = request.num_prompt_tokens
        kept = [list(group) for group in blocks]
        if any(len(ids) < group.blocks_of(tokens) for ids, group in zip(kept, self._groups)):
            self.warnings.append(f"request {request.request_id} has fewer blocks than its prompt")
            return False, None
        lease = self._leases.give(request.request_id)
        if lease is None:
            self.warnings.append("all leases are given; a request's blocks are not kept")
            return False, None
        self._orders.leases[request.request_id] = lease
        return True, {
            "do_remote_prefill": True,
            "do_remote_decode": False,
            "remote_workers": self.workers,
            "remote_request_id": request.request_id,
            "remote_lease": str(lease),
            "remote_block_ids": [
                ids[: group.blocks_of(tokens)] for ids, group in zip(kept, self._groups)
            ],
            "remote_num_tokens": tokens,
            "remote_prompt": prompt_digest(request),
        }

    # ---- steps

    def orders(self) -> Orders:
        """The workers' tasks in the next step."""
        made, self._orders = self._orders, Orders()
        return made

    def reported(self, sent: Iterable[str]) -> None:
        """All workers have reported that these requests' blocks are not needed any more."""
        for request in sent:
            self._leases.take_back(request)

    def end_leases(self) -> None:
        """The blocks kept for others are invalid from now on, as after a change of the weights."""
        self._orders.ends_leases = True

    @property
    def leases(self) -> int:
        """How many requests' blocks are kept for others."""
        return len(self._leases)
