# SPDX-License-Identifier: Apache-2.0
"""Models with random weights, made on this machine, since tests download nothing."""

import json
import pathlib

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


def llama(
    folder: pathlib.Path,
    *,
    layers: int = 4,
    hidden: int = 256,
    heads: int = 8,
    kv_heads: int = 4,
    dtype: str = "float32",
    seed: int = 1,
    window: int = 0,
) -> pathlib.Path:
    """A Llama, or a Mistral where ``window`` tokens are seen, whose weights are drawn with the seed; the
    folder that ``vllm serve`` takes."""
    if (folder / "model.safetensors").exists():
        return folder
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM, MistralConfig, MistralForCausalLM

    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    common = {
        "vocab_size": _WORDS,
        "hidden_size": hidden,
        "intermediate_size": 2 * hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": 4096,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.3,  # so that the tokens depend on the prompt
    }
    if window:
        model = MistralForCausalLM(MistralConfig(sliding_window=window, **common))
    else:
        model = LlamaForCausalLM(LlamaConfig(**common))
    model.to(getattr(torch, dtype)).save_pretrained(folder, safe_serialization=True)
    config = json.loads((folder / "config.json").read_text())
    config["torch_dtype"] = dtype
    (folder / "config.json").write_text(json.dumps(config))
    _tokenizer(folder)
    return folder
