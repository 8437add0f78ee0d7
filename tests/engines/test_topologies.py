# SPDX-License-Identifier: Apache-2.0
"""Engines of different numbers of ranks, other kinds of caches, and caches that do not fit each other."""

import contextlib

import pytest
from support import models
from support.disaggregation import prefill, prompt, transfer
from support.server import RequestFailed, Server, all_at_once


@contextlib.contextmanager
def two(model, store, logs, first=(), second=(), **more):
    """Two servers, each of which may do both; `first` and `second` are their own arguments."""
    servers = []
    try:
        for name, arguments in (("first", first), ("second", second)):
            servers.append(Server(model, logs / f"{name}.log", transfer(store), *arguments, **more))
        yield [server.wait_until_ready() for server in servers]
    finally:
        for server in servers:
            server.close()


def agree(first, second, count=4):
    """What one computed, the other goes on with; tokens as without."""
    for seed in range(count):
        tokens = prompt(3000 + seed)
        wanted = first.tokens(tokens, 10)
        params = prefill(first, tokens)
        # An empty cache there: all blocks come.
        assert second.tokens(tokens, 10, params) == wanted, (seed, len(tokens))
    assert second.metric("memspan_kv_failures_total") == 0, second.text()[-3000:]
    assert second.metric("memspan_kv_read_seconds_count") >= count
    return True


def at_once(first, second):
    prompts = [prompt(3100 + seed, 40 + 20 * seed) for seed in range(10)]
    got = all_at_once([lambda t=t: second.tokens(t, 6, prefill(first, t)) for t in prompts])
    return got == [first.tokens(tokens, 6) for tokens in prompts]


def test_two_tensor_ranks_and_one(model, store, logs):
    """Pipeline ranks are tested with workers alone (tests/python/test_connectors.py): with two of them vLLM
    0.32 on CPUs ends at the first request, without any connector, too."""
    with two(model, store, logs, (), ("--tensor-parallel-size", "2")) as (one, several):
        assert agree(one, several) and at_once(one, several)
        assert agree(several, one) and at_once(several, one)


def test_latent_attention(store, logs, tmp_path):
    """vLLM's kernels for CPUs give other tokens in prefill than in decode, without any connector; so what
    each engine makes of the other's blocks is compared."""
    with two(models.deepseek(tmp_path / "model"), store, logs, dtype="bfloat16") as (first, second):
        for seed in range(6):
            tokens = prompt(3000 + seed)
            there = second.tokens(tokens, 10, prefill(first, tokens))
            assert first.tokens(tokens, 10, prefill(second, tokens)) == there
        assert first.metric("memspan_kv_failures_total") == second.metric("memspan_kv_failures_total") == 0
        assert first.metric("memspan_kv_read_seconds_count") == 6


CACHES = {
    "window": (lambda folder: models.mistral(folder, 96), ()),
    "hybrid": (lambda folder: models.gemma(folder, 96), ()),
    "bfloat16": (lambda folder: models.llama(folder, dtype="bfloat16"), ("--dtype", "bfloat16", "--block-size", "128")),
    "float8": (
        lambda folder: models.llama(folder, dtype="bfloat16"),
        ("--dtype", "bfloat16", "--kv-cache-dtype", "fp8"),
    ),
}


@pytest.mark.parametrize("kind", CACHES)
def test_kinds_of_caches(kind, store, logs, tmp_path):
    make, arguments = CACHES[kind]
    with two(make(tmp_path / "model"), store, logs, arguments, arguments) as (first, second):
        assert agree(first, second) and at_once(second, first)


def test_caches_that_do_not_fit(model, store, logs):
    with two(model, store, logs, (), ("--block-size", "64")) as (first, second):
        for one, other in ((first, second), (second, first)):
            tokens = prompt(3200, 300)
            with pytest.raises(RequestFailed):
                other.complete(tokens, 4, prefill(one, tokens))
            assert "has other caches" in other.text() and "block size" in other.text()
            assert other.tokens(tokens, 4) == one.tokens(tokens, 4)
