# SPDX-License-Identifier: Apache-2.0
"""Inference engines over memspan's transfers: ``vllm`` is a KV connector that vLLM loads by module
path, ``vllm_pool`` another one, whose blocks many engines share, ``sglang`` puts memspan under SGLang's
transfer engines, ``paged`` is what the first and others share."""
