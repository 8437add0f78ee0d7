# SPDX-License-Identifier: Apache-2.0
"""Reads an engine's KV caches from vLLM's configuration, for the connectors."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from memspan.connectors.kv_scheduler import Group

import vllm
from vllm.platforms import current_platform

_FULL = ("FullAttentionSpec", "MLAAttentionSpec")
_WINDOW = "SlidingWindowSpec"


class NotSupported(ValueError):
    """The engine is set up in a way that the connector cannot serve."""


def _refuse(what: str) -> None:
    raise NotSupported(f"NOT_SUPPORTED: memspan's connector does not move {what}")


def _spec_of(spec: Any) -> Any:
    """If a group's layers have their own specs, one of them."""
    several = getattr(spec, "kv_cache_specs", None)
    if several is None:
        return spec
    kinds = {type(each).__name__ for each in several.values()}
    if len(kinds) != 1:
        _refuse(f"a group of caches of several kinds: {', '.join(sorted(kinds))}")
    return next(iter(several.values()))


def group_ids(kv_cache_config: Any) -> tuple[int, ...]:
    """The groups that leave the engine, of all that block lists have."""
    ids = getattr(kv_cache_config, "transfer_group_ids", None)
    return tuple(range(len(kv_cache_config.kv_cache_groups))) if ids is None else tuple(ids)


def groups_of(vllm_config: Any, kv_cache_config: Any) -> list[Group]:
    """The groups of caches that leave the engine. NotSupported for what cannot be moved."""
    parallel = vllm_config.parallel_config
    for name in ("decode_context_parallel_size", "prefill_context_parallel_size"):
        if getattr(parallel, name, 1) > 1:
            _refuse(f"caches that are sharded by token ({name} is {getattr(parallel, name)})")
    if getattr(vllm_config, "num_prefill_lookahead_tokens", 0) > 1:
        _refuse("caches of drafts that look several tokens ahead")
    found = []
    for number in group_ids(kv_cache_config):
        group = kv_cache_config.kv_cache_groups[number]
        spec = _spec_of(group.kv_cache_spec)
        kind, window = type(spec).__name__, 0
        if kind == _WINDOW:
            window = spec.sliding_window
            if getattr(spec, "extra_retained_tokens", 0):
                _refuse("sliding windows that keep tokens for drafts")
        elif kind not in _FULL:
            _refuse(f"caches of kind {kind}; it does {', '.join((*_FULL, _WINDOW))}")
        if getattr(spec, "tokens_per_state", 1) != 1:
            _refuse("caches that hold several tokens in a state")
        found.append(Group(tuple(group.layer_names), spec.block_size, window))
    return found


def shards_of(vllm_config: Any, kv_cache_config: Any, rank: int) -> dict[str, int]:
    """Which share of a layer's heads the worker of this tensor-parallel rank has, by layer."""
    size = vllm_config.parallel_config.tensor_parallel_size
    found = {}
    for group in kv_cache_config.kv_cache_groups:
        spec = _spec_of(group.kv_cache_spec)
        shards = getattr(spec, "max_tp_shards", None)
        if shards is None:
            is_one = type(spec).__name__ == "MLAAttentionSpec"
            shards = 1 if is_one else vllm_config.model_config.get_total_num_kv_heads()
        for layer in group.layer_names:
            found[layer] = rank * min(shards, size) // size
    return found


def _config_digest(model_config: Any) -> str:
    config = dict(model_config.hf_text_config.to_dict())
    for name in ("_name_or_path", "transformers_version", "torch_dtype", "dtype"):
        config.pop(name, None)
    text = json.dumps(config, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _packing(vllm_config: Any, spec: Any) -> str:
    """On CPUs: the instruction set whose order of bytes the attention kernel keeps inside a block."""
    if not current_platform.is_cpu() or not hasattr(spec, "head_size"):
        return ""
    from vllm.v1.attention.backends import cpu_attn

    choose: Any = getattr(cpu_attn, "_get_attn_isa", None)
    if choose is None:
        return ""
    dtype = vllm_config.model_config.dtype
    try:
        return choose(dtype, spec.block_size, spec.head_size, vllm_config.cache_config.cache_dtype)
    except TypeError:  # older generations ask for less
        return choose(dtype, spec.block_size)


def describe(vllm_config: Any, kv_cache_config: Any, extra: Mapping[str, Any]) -> dict[str, Any]:
    """The layout of this engine's blocks, as JSON. ``extra``: ``model_id`` in it names the model
    where engines load it from different folders."""
    model, caches = vllm_config.model_config, []
    for number in group_ids(kv_cache_config):
        spec = _spec_of(kv_cache_config.kv_cache_groups[number].kv_cache_spec)
        caches.append(
            [
                type(spec).__name__,
                spec.block_size,
                str(getattr(spec, "dtype", "")),
                getattr(spec, "sliding_window", None) or 0,
                _packing(vllm_config, spec),
            ]
        )
    return {
        "model_id": str(extra.get("model_id", model.model)),
        "revision": str(getattr(model, "revision", None)),
        "model_config": _config_digest(model),
        "quantization": str(getattr(model, "quantization", None)),
        "dtype": str(model.dtype),
        "cache_dtype": str(vllm_config.cache_config.cache_dtype),
        "caches [kind, block size, dtype, window, packing]": caches,
        "layout": str(getattr(kv_cache_config, "kv_cache_layout", None)),
        "device": str(current_platform.device_type),
        "vllm": vllm.__version__.split("+")[0],
    }
