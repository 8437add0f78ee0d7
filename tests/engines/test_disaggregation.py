# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode by two real vLLM servers: right tokens, or an error of the request, and no leaks."""

import http.client
import json
import time

import pytest
from support.disaggregation import WANTS_DECODE, prefill, prompt, transfer
from support.server import RequestFailed, Server, all_at_once

LEASE_S = 4
BLOCKS = 96


@pytest.fixture(scope="module")
def engines(model, store, logs):
    """(prefill, decode): long prompts are computed in chunks, and blocks are few."""
    config = transfer(store, lease_s=LEASE_S)
    arguments = ("--max-num-batched-tokens", "128")
    pair = [
        Server(model, logs / f"{name}.log", config, *arguments, blocks=BLOCKS)
        for name in ("prefill", "decode")
    ]
    try:
        yield tuple(server.wait_until_ready() for server in pair)
    finally:
        for server in pair:
            server.close()


def until(condition, seconds=30):
    """AssertionError when it is not so by then."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it is not so in time"
        time.sleep(0.05)  # between questions


def gives_all_back(server):
    """No lease is held, and a request that needs all blocks finds them."""
    until(lambda: server.metric("memspan_kv_leases") == 0)
    assert len(server.tokens(prompt(1, 990), 4)) == 4
    return True


def test_in_sequence(engines):
    first, second = engines
    read = second.metric("memspan_kv_read_seconds_count")
    for seed in range(10):
        tokens = prompt(seed)
        assert second.tokens(tokens, 12, prefill(first, tokens)) == first.tokens(tokens, 12), seed
    until(lambda: second.metric("memspan_kv_read_seconds_count") == read + 10)
    assert second.metric("memspan_kv_failures_total") == 0
    assert gives_all_back(first) and gives_all_back(second)


def test_many_at_once(engines):
    first, second = engines
    prompts = [prompt(100 + seed, 30 + 3 * seed) for seed in range(40)]
    wanted = [first.tokens(tokens, 8) for tokens in prompts]
    got = all_at_once(
        [lambda tokens=tokens: second.tokens(tokens, 8, prefill(first, tokens)) for tokens in prompts]
    )
    assert got == wanted
    assert gives_all_back(first) and gives_all_back(second)


def test_prefix_caches_on_both_sides(engines):
    first, second = engines
    common = prompt(200, 200)
    for seed in range(6):
        tokens = common + prompt(201 + seed, 90)
        assert second.tokens(tokens, 8, prefill(first, tokens)) == first.tokens(tokens, 8)
    # All of it is here already.
    assert second.tokens(tokens, 8, prefill(first, tokens)) == first.tokens(tokens, 8)
    until(lambda: first.metric("memspan_kv_leases") == 0)


def fails(server, tokens, params):
    """The request gets an error, and the engine lives."""
    failures = server.metric("memspan_kv_failures_total")
    with pytest.raises(RequestFailed):
        server.complete(tokens, 4, params)
    until(lambda: server.metric("memspan_kv_failures_total") == failures + 1)
    return server.is_healthy()


def test_params_that_come_twice(engines):
    first, second = engines
    tokens = prompt(300, 100)
    params = prefill(first, tokens)
    assert second.tokens(tokens, 4, dict(params)) == first.tokens(tokens, 4)
    # The last block of a prompt is never in a prefix cache.
    assert fails(second, tokens, dict(params))
    assert "keeps the blocks of lease" in second.text()
    assert first.is_healthy()


@pytest.mark.parametrize(
    "change",
    [
        {"remote_workers": None},
        {"remote_workers": []},
        {"remote_workers": ["nobody"]},
        {"remote_workers": [7]},
        {"remote_workers": ["127.0.0.1:9/aa/1000/100"]},
        {"remote_lease": None},
        {"remote_lease": "5"},
        {"remote_lease": "99999999:1"},
        {"remote_lease": 12},
        {"remote_block_ids": None},
        {"remote_block_ids": [[]]},
        {"remote_block_ids": [[1, 2, 3, "x"]]},
        {"remote_block_ids": [[1, 2, 3, 10**9]]},
        {"remote_block_ids": [[1], [2]]},
        {"remote_num_tokens": 99},
        {"remote_num_tokens": "100"},
        {"remote_prompt": "abc"},
        {"remote_prompt": None},
    ],
    ids=str,
)
def test_params_that_are_wrong(engines, change):
    first, second = engines
    tokens = prompt(400 + hash(str(change)) % 10000, 100)
    params = {**prefill(first, tokens), **change}
    assert fails(second, tokens, {k: v for k, v in params.items() if v is not None})
    assert len(second.tokens(tokens, 4)) == 4


def test_only_the_order_to_read(engines):
    assert fails(engines[1], prompt(500, 50), {"do_remote_prefill": True})


def test_another_prompt(engines):
    first, second = engines
    params = prefill(first, prompt(501, 100))
    assert fails(second, prompt(502, 100), params)
    assert "differs in the other engine" in second.text()


def test_prompt_logprobs_are_computed_here(engines):
    first, second = engines
    tokens = prompt(600, 100)
    params = prefill(first, tokens)
    assert second.tokens(tokens, 4, params, prompt_logprobs=1) == first.tokens(tokens, 4)
    until(lambda: first.metric("memspan_kv_leases") == 0)


def test_nobody_reads(engines):
    """More requests than blocks: each one's are given back when its time is over."""
    first, _ = engines
    expired = first.metric("memspan_kv_expired_leases_total")
    for seed in range(12):
        prefill(first, prompt(700 + seed, 500))
    until(lambda: first.metric("memspan_kv_expired_leases_total") == expired + 12)
    assert gives_all_back(first)


def test_a_late_reader_reads_nothing(engines):
    first, second = engines
    tokens = prompt(800, 100)
    expired = first.metric("memspan_kv_expired_leases_total")
    params = prefill(first, tokens)
    until(lambda: first.metric("memspan_kv_expired_leases_total") == expired + 1)
    assert fails(second, tokens, params)


def hang_up(server, tokens, params, count=500):
    """Sends a request, and ends the connection without waiting."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
    body = {"model": "tiny", "prompt": tokens, "max_tokens": count, "temperature": 0, "ignore_eos": True,
            "kv_transfer_params": params, "stream": True}
    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
    connection.getresponse()
    connection.close()


def test_clients_hang_up(engines):
    first, second = engines
    for seed in range(4):
        hang_up(first, prompt(900 + seed, 400), dict(WANTS_DECODE))
        tokens = prompt(910 + seed, 400)
        hang_up(second, tokens, prefill(first, tokens))
    # Before they are scheduled: all blocks of the decode engine are in use.
    calls = [lambda s=s: hang_up(second, prompt(920 + s, 400), prefill(first, prompt(920 + s, 400))) for s in range(12)]
    assert all_at_once(calls) == [None] * 12
    assert gives_all_back(first) and gives_all_back(second)
    tokens = prompt(930, 300)
    assert second.tokens(tokens, 4, prefill(first, tokens)) == first.tokens(tokens, 4)
