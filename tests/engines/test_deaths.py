# SPDX-License-Identifier: Apache-2.0
"""Engines and the store are killed: who is left gives right answers, and nothing stays behind."""

import pathlib
import threading
import time

from support.disaggregation import prefill, prompt, transfer
from support.server import Server
from support.stores import Store

LEASE_S = 3


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it is not so in time"
        time.sleep(0.05)  # between questions


def left_behind():
    return {path.name for path in pathlib.Path("/dev/shm").glob("*memspan*")}


def test_each_part_is_killed_and_comes_back(model, logs):
    before = left_behind()
    store = Store(logs / "store.log")
    servers = []

    def start(name):
        config = transfer(store, "recompute", lease_s=LEASE_S)
        servers.append(Server(model, logs / f"{name}.log", config, blocks=96))
        return servers[-1]

    try:
        first, second = start("prefill"), start("decode")
        first.wait_until_ready(), second.wait_until_ready()
        prompts = [prompt(5000 + seed, 150 + seed) for seed in range(8)]
        wanted = [first.tokens(tokens, 8) for tokens in prompts]
        assert second.tokens(prompts[0], 8, prefill(first, prompts[0])) == wanted[0]

        # The store: who know each other go on, while it is away and afterwards.
        store.kill()
        assert second.tokens(prompts[1], 8, prefill(first, prompts[1])) == wanted[1]
        store.start()
        assert second.tokens(prompts[2], 8, prefill(first, prompts[2])) == wanted[2]
        assert second.metric("memspan_kv_failures_total") == 0

        # The decode engine, while blocks are kept for it.
        prefill(first, prompts[3])
        until(lambda: first.metric("memspan_kv_leases") >= 1)
        second.kill()
        until(lambda: first.metric("memspan_kv_leases") == 0)
        second = start("decode-2").wait_until_ready()
        assert second.tokens(prompts[4], 8, prefill(first, prompts[4])) == wanted[4]
        assert second.metric("memspan_kv_failures_total") == 0

        # The prefill engine, after it has answered: the prompt is computed here.
        params = prefill(first, prompts[5])
        first.kill()
        assert second.tokens(prompts[5], 8, params) == wanted[5]
        assert second.metric("memspan_kv_failures_total") == 1
        # In the middle of many.
        first = start("prefill-2").wait_until_ready()
        many = [prompt(5100 + seed, 400) for seed in range(12)]
        expected = [second.tokens(tokens, 6) for tokens in many]
        results: dict[int, list[int]] = {}

        def ask(at):
            try:
                params = prefill(first, many[at])
            except OSError:
                params = None  # as a proxy: the decode engine computes
            results[at] = second.tokens(many[at], 6, params)

        threads = [threading.Thread(target=ask, args=(at,)) for at in range(len(many))]
        for thread in threads:
            thread.start()
        until(lambda: len(results) >= 2)
        first.kill()
        for thread in threads:
            thread.join()
        assert [results[at] for at in range(len(many))] == expected
        first = start("prefill-3").wait_until_ready()
        failures = second.metric("memspan_kv_failures_total")
        assert second.tokens(prompts[6], 8, prefill(first, prompts[6])) == wanted[6]
        assert second.metric("memspan_kv_failures_total") == failures
        assert second.is_healthy() and first.is_healthy()
    finally:
        for server in servers:
            server.close()
        store.close()
    assert left_behind() <= before
