# SPDX-License-Identifier: Apache-2.0
"""Keys of KV blocks that are equal in two vLLM processes when, and only when, the blocks' bytes mean the
same: a digest of what the worker's cache is, then vLLM's hash of the block and all tokens before it.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from typing import Any

__all__ = ["key_of", "model_identity", "salt_of"]

_DIGEST = 32  # bytes, those of the pool's keys
_WEIGHTS = (".safetensors", ".bin", ".pt", ".gguf")


def _files_of(model: str) -> list[list[Any]]:
    """[name, bytes, time] of a folder's weights: new weights under an old name are other blocks."""
    path = os.path.realpath(model)
    names = []
    if os.path.isdir(path):
        names = [name for name in os.listdir(path) if name.endswith(_WEIGHTS)]
    elif os.path.isfile(path):
        path, name = os.path.split(path)
        names = [name]
    found = []
    for name in sorted(names):
        about = os.stat(os.path.join(path, name))
        found.append([name, about.st_size, about.st_mtime_ns])
    return found


def model_identity(vllm_config: Any) -> dict[str, Any]:
    """The inputs that determine a model's keys and values: the weights, and the code that computes
    with them."""
    model, load = vllm_config.model_config, vllm_config.load_config
    config = model.hf_config.to_json_string()
    return {
        "model": model.model,
        "revision": model.revision,
        "files": _files_of(model.model),
        "load": str(load.load_format),
        "seed": model.seed if str(load.load_format) == "dummy" else None,
        "config": hashlib.sha256(config.encode()).hexdigest(),
        "dtype": str(model.dtype),
        "quantization": str(model.quantization),
        "cache_dtype": str(vllm_config.cache_config.cache_dtype),
    }


def _processor() -> str:
    """The processor's features: vLLM chooses the order of a block's elements on a CPU by them."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("flags", "Features")):
                    return " ".join(sorted(line.split(":", 1)[1].split()))
    except OSError:
        pass
    return ""


def salt_of(description: dict[str, Any]) -> bytes:
    """The digest of a worker's cache, with this machine's processor."""
    text = json.dumps({**description, "processor": _processor()}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST).digest()


def key_of(salt: bytes, epoch: bytes, hashes: Iterable[bytes]) -> list[bytes]:
    """The pool's keys of blocks."""
    prefix = hashlib.blake2b(salt + epoch, digest_size=_DIGEST)
    keys = []
    for block_hash in hashes:
        digest = prefix.copy()
        digest.update(block_hash)
        keys.append(digest.digest())
    return keys
