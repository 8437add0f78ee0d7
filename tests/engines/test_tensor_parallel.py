# SPDX-License-Identifier: Apache-2.0
"""`vllm serve` with its ranks' collectives by memspan (MEMSPAN_VLLM_BACKEND=1): the same tokens, said in the log, idle when
there is nothing to do, and vLLM's own where memspan cannot. Not two pipeline stages, which vLLM 0.32 does not run on CPUs: what they
send each other is in tests/python/test_engine_hooks.py."""

import contextlib
import time

import pytest
from support import models, server

psutil = pytest.importorskip("psutil", reason="vLLM brings psutil")

PROMPTS = [[5 + 7 * at + i for i in range(40 + at)] for at in range(6)]
TAKEN = "memspan has taken over all-reduce, all-gather, gather and tensor dicts of group"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return models.llama(tmp_path_factory.mktemp("models") / "tiny")


@contextlib.contextmanager
def serving(model, folder, *arguments, **env):
    one = server.Server(model, folder / "vllm.log", None, *arguments, env=env)
    try:
        yield one.wait_until_ready()
    finally:
        one.close()


def answers(one):
    """In sequence and all at once, by the prompts."""
    alone = [one.tokens(prompt) for prompt in PROMPTS]
    together = server.all_at_once([lambda prompt=prompt: one.tokens(prompt) for prompt in PROMPTS])
    return alone, together


@pytest.fixture(scope="module")
def expected(model, tmp_path_factory):
    """vLLM's own, with two ranks."""
    with serving(model, tmp_path_factory.mktemp("own"), "--tensor-parallel-size", "2") as one:
        assert "memspan" not in one.text()
        return answers(one)


def cores_used(one, seconds=2.0):
    """By all processes of the server, in cores."""
    root = psutil.Process(one.process.pid)
    everybody = [root, *root.children(recursive=True)]

    def used():
        return sum(sum(process.cpu_times()[:2]) for process in everybody)

    before = used()
    time.sleep(seconds)  # what is measured is how busy they are meanwhile
    return (used() - before) / seconds


def test_two_ranks_give_vllms_tokens_and_rest_when_idle(model, expected, tmp_path):
    with serving(model, tmp_path, "--tensor-parallel-size", "2", MEMSPAN_VLLM_BACKEND="1") as one:
        assert one.text().count(f"{TAKEN} tp:0 (2 ranks)") == 1
        assert "backend=memspan" in one.text()
        assert answers(one) == expected
        end = time.monotonic() + 10  # vLLM's own polling goes on for a second
        while (used := cores_used(one)) > 0.1 and time.monotonic() < end:
            pass
        assert used <= 0.1
        assert one.tokens(PROMPTS[0]) == expected[0][0]


def test_where_memspan_cannot_vllms_own_is_used_and_the_log_says_why(model, expected, tmp_path):
    environment = {"MEMSPAN_VLLM_BACKEND": "1", "MEMSPAN_TORCH_BUILD_DIR": "none"}
    with serving(model, tmp_path, "--tensor-parallel-size", "2", **environment) as one:
        assert 'memspan: the groups stay with gloo: MEMSPAN_TORCH_BUILD_DIR is "none"' in one.text()
        assert "memspan: group tp:0 stays with vLLM's shared memory: the backend of its group is gloo" in one.text()
        assert TAKEN not in one.text()
        assert answers(one) == expected
