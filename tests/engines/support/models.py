# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, made on this machine, since tests download nothing."""

import json
import pathlib
from typing import Any

_WORDS = 512


def _tokenizer(folder: pathlib.Path) -> None:
    """Of the words t0, t1, ...: a server wants a tokenizer, and prompts are token ids."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(_WORDS)}, unk_token="t0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="t1", eos_token="t2", unk_token="t0", pad_token="t0"
    ).save_pretrained(folder)


def _save(folder: pathlib.Path, model: Any, dtype: str) -> pathlib.Path:
    import torch

    model.to(getattr(torch, dtype)).save_pretrained(folder, safe_serialization=True)
    config = json.loads((folder / "config.json").read_text())
    config["torch_dtype"] = dtype
    (folder / "config.json").write_text(json.dumps(config))
    _tokenizer(folder)
    return folder


def _common(layers: int, hidden: int, heads: int, kv_heads: int, words: int) -> dict[str, Any]:
    return {
        "vocab_size": words,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }


def llama(
    folder: pathlib.Path,
    *,
    layers: int = 4,
    hidden: int = 256,
    heads: int = 8,
    kv_heads: int = 4,
    dtype: str = "float32",
    seed: int = 1,
    spread: float = 0.3,
) -> pathlib.Path:
    """A Llama whose weights are drawn with the seed; ``spread`` makes the tokens depend on the prompt.
    The folder that ``vllm serve`` takes."""
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    common = _common(layers, hidden, heads, kv_heads, _WORDS)
    model = LlamaForCausalLM(LlamaConfig(initializer_range=spread, **common))
    return _save(folder, model, dtype)


def mistral(folder: pathlib.Path, window: int) -> pathlib.Path:
    """All layers look back at ``window`` tokens."""
    import torch
    from transformers import MistralConfig, MistralForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(2)
    common = _common(3, 256, 8, 4, _WORDS)
    model = MistralForCausalLM(MistralConfig(sliding_window=window, initializer_range=0.3, **common))
    return _save(folder, model, "float32")


def gemma(folder: pathlib.Path, window: int) -> pathlib.Path:
    """Full attention in every third layer, ``window`` tokens in the others: two groups of caches."""
    import torch
    from transformers import Gemma3ForCausalLM, Gemma3TextConfig

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(3)
    kinds = ["sliding_attention", "sliding_attention", "full_attention"] * 2
    config = Gemma3TextConfig(
        sliding_window=window,
        layer_types=kinds,
        head_dim=32,
        initializer_range=0.3,
        **_common(6, 256, 8, 4, _WORDS),
    )
    return _save(folder, Gemma3ForCausalLM(config), "float32")


def deepseek(folder: pathlib.Path) -> pathlib.Path:
    """Multi-head latent attention: one head that all ranks hold."""
    import torch
    from transformers import DeepseekV2Config, DeepseekV2ForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(4)
    config = DeepseekV2Config(
        kv_lora_rank=512,
        q_lora_rank=None,
        qk_nope_head_dim=128,
        qk_rope_head_dim=64,
        v_head_dim=128,
        first_k_dense_replace=8,
        initializer_range=0.1,
        **_common(3, 256, 4, 4, _WORDS),
    )
    return _save(folder, DeepseekV2ForCausalLM(config), "bfloat16")
