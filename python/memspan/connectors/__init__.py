# SPDX-License-Identifier: Apache-2.0
"""Inference engines over memspan's transfers: ``vllm`` is a KV connector that vLLM loads by module
path, ``sglang`` puts memspan under SGLang's transfer engines, ``paged`` is what they share."""
