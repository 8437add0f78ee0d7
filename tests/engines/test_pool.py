# SPDX-License-Identifier: Apache-2.0
"""Real vLLM engines that share a pool of KV blocks: what one has computed the others copy, and the tokens
are those of an engine without a pool, whatever becomes of the others."""

import json
import pathlib
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest
from memspan.connectors import pool_settings
from support import models
from support.models import llama
from support.server import Server, all_at_once, environment, free_port

SYSTEM = [random.Random(5).randrange(10, 500) for _ in range(230)]  # seven blocks and a part
CROWD = 24
# In bfloat16 the last bits depend on how tokens were batched, and with them now and then a token.
EXACT = ("--dtype", "float32")


def tail(number: int) -> list[int]:
    return [random.Random(100 + number).randrange(10, 500) for _ in range(40 + number)]


def long_prompt(number: int) -> list[int]:
    """Of seven blocks that no other number has."""
    return [random.Random(1000 + number).randrange(10, 500) for _ in range(7 * 32 + number % 5)]


def transfer(store: str, **extra) -> dict:
    return {
        "kv_connector": "MemspanPoolConnector",
        "kv_connector_module_path": "memspan.connectors.vllm_pool",
        "kv_role": "kv_both",
        "kv_connector_extra_config": {"store_url": store, "largest_share": "64M", **extra},
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    return tmp_path_factory.mktemp("pool")


@pytest.fixture(scope="module")
def model(folder) -> pathlib.Path:
    return llama(folder / "model")


@pytest.fixture(scope="module")
def wanted(folder, model) -> dict:
    """The tokens of an engine without a pool."""
    server = Server(model, folder / "without.log", None, *EXACT).wait_until_ready()
    try:
        return {
            "system": [server.tokens(SYSTEM + tail(i)) for i in range(4)],
            "long": [server.tokens(long_prompt(i)) for i in range(CROWD)],
        }
    finally:
        server.close()


class Keeper:
    """A process that gives memory to a pool."""

    def __init__(self, share: str) -> None:
        self.store = f"tcp://127.0.0.1:{free_port()}"
        command = [sys.executable, "-m", "memspan.kv_pool", "--store", self.store]
        command += ["--share", share, "--largest-share", "64M"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert "gives" in self.process.stdout.readline()

    def close(self) -> None:
        self.process.terminate()
        assert self.process.wait(30) == 0
        self.process.stdout.close()


@pytest.fixture
def keeper():
    made = Keeper("64M")
    yield made
    made.close()


@pytest.fixture
def start(folder, model):
    """Starts engines, and ends them."""
    servers = []

    def start(name: str, transfer: dict, *arguments: str, **more) -> Server:
        server = Server(model, folder / f"{name}.log", transfer, *EXACT, *arguments, **more)
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.close()


def hits(server: Server) -> float:
    return server.metric("vllm:memspan_pool_hit_tokens_total")


def test_the_second_engine_copies_and_survives_the_first(keeper, start, wanted):
    first = start("first", transfer(keeper.store))
    second = start("second", transfer(keeper.store))
    first.wait_until_ready()
    second.wait_until_ready()
    assert [first.tokens(SYSTEM + tail(i)) for i in range(2)] == wanted["system"][:2]
    assert hits(first) == 0 and first.metric("vllm:memspan_pool_stored_blocks_total") >= 7
    # Other requests after the same system prompt: seven blocks of it are copied.
    assert second.tokens(SYSTEM + tail(2)) == wanted["system"][2]
    assert hits(second) == 7 * 32
    assert second.metric("vllm:memspan_pool_loaded_blocks_total") == 7
    assert second.metric("vllm:external_prefix_cache_hits_total") == 7 * 32
    assert second.metric("vllm:memspan_pool_blocks") >= 7
    # The same request: all its full blocks, those with generated tokens too.
    before = hits(second)
    assert second.tokens(SYSTEM + tail(0)) == wanted["system"][0]
    assert hits(second) > before
    # The first one dies while it computes and stores; the second goes on, and finds what is whole.
    calls = [lambda i=i: first.tokens(long_prompt(i), timeout_s=20) for i in range(CROWD)]
    calls.append(first.kill)
    all_at_once(calls)
    assert [second.tokens(long_prompt(i)) for i in range(CROWD)] == wanted["long"]
    assert second.is_healthy()
    # A new engine in its place finds what both have put.
    again = start("again", transfer(keeper.store)).wait_until_ready()
    assert again.tokens(SYSTEM + tail(3)) == wanted["system"][3]
    assert hits(again) == 7 * 32
    assert again.tokens(long_prompt(4)) == wanted["long"][4]
    assert hits(again) >= 14 * 32


def test_shares_of_engines_under_pressure(start, wanted):
    """Two engines give two megabytes each, which is not enough for what they compute, and have so few blocks
    themselves that requests are preempted."""
    store = f"tcp://127.0.0.1:{free_port()}"
    engines = [start(f"small{i}", transfer(store, share="2M"), blocks=36) for i in range(2)]
    for engine in engines:
        engine.wait_until_ready()
    calls = []
    for _ in range(2):
        calls += [lambda i=i: engines[i % 2].tokens(long_prompt(i)) for i in range(CROWD)]
        calls += [lambda i=i: engines[(i + 1) % 2].tokens(long_prompt(i)) for i in range(CROWD)]
    assert all_at_once(calls) == 4 * wanted["long"]
    assert sum(engine.metric("vllm:memspan_pool_evicted_blocks_total") for engine in engines) > 0
    engines[0].kill()
    assert engines[1].tokens(SYSTEM + tail(1)) == wanted["system"][1]


def test_tensor_parallel_ranks(keeper, start):
    """An engine of two ranks finds what it has computed itself, after it has forgotten its own cache."""
    arguments = ("--tensor-parallel-size", "2")
    env = {"VLLM_SERVER_DEV_MODE": "1"}
    server = start("ranks", transfer(keeper.store), *arguments, env=env).wait_until_ready()
    computed = server.tokens(SYSTEM + tail(0))
    assert hits(server) == 0
    server.post("/reset_prefix_cache", {})
    assert server.tokens(SYSTEM + tail(0)) == computed
    assert hits(server) == 8 * 32
    # Each rank has loaded its part of each block.
    assert server.metric("vllm:memspan_pool_loaded_blocks_total") == 16


def test_latent_attention_cannot_go_on_behind_a_prefix(keeper, folder):
    """On a CPU: vLLM turns prefix caching off for it, and a pool would give wrong tokens."""
    latent = models.deepseek(folder / "latent")
    server = Server(latent, folder / "latent.log", transfer(keeper.store))
    try:
        assert server.process.wait(200) != 0
        assert "does not support engines without prefix caching" in server.text()
    finally:
        server.close()


FAILING = """
import json, os, sys
os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
model, transfer, prompts = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
if __name__ == "__main__":
    from memspan.connectors import pool_settings
    from vllm import LLM, SamplingParams
    from vllm.config import KVTransferConfig
    engine = LLM(model, dtype="float32", enforce_eager=True, block_size=32, max_model_len=1024, disable_log_stats=False,
                 kv_transfer_config=KVTransferConfig(**transfer))
    pool = pool_settings._shared[transfer["kv_connector_extra_config"]["store_url"]][0]
    def tokens(prompts):
        sampling = SamplingParams(max_tokens=16, temperature=0, ignore_eos=True)
        outputs = engine.generate([{"prompt_token_ids": p} for p in prompts], sampling, use_tqdm=False)
        return [list(output.outputs[0].token_ids) for output in outputs]
    def metric(name):
        return sum(m.value for m in engine.get_metrics() if m.name == "vllm:memspan_pool_" + name)
    get_pieces = type(pool).get_pieces
    results = {"first": tokens(prompts)}
    # All found blocks but the first are gone when they are to be copied, and what is there is overwritten.
    def fails(self, keys, addresses, sizes):
        got = get_pieces(self, keys, addresses, sizes)
        import ctypes
        for address, size in zip(addresses[len(sizes):], list(sizes) * (len(keys) - 1)):
            ctypes.memset(int(address), 0x3F, int(size))
        return got[:1] + [False] * (len(got) - 1)
    type(pool).get_pieces = fails
    engine.reset_prefix_cache()
    results["failing"] = tokens(prompts)
    results["failed"] = metric("failed_blocks")
    type(pool).get_pieces = get_pieces
    engine.reset_prefix_cache()
    results["after"] = tokens(prompts)
    # Nothing wrong has got into the pool: it is emptied of what was there before, and asked again.
    type(pool).get_pieces = fails
    engine.reset_prefix_cache()
    stored = metric("stored_blocks")
    results["again"] = tokens(prompts)
    type(pool).get_pieces = get_pieces
    engine.reset_prefix_cache()
    results["last"] = tokens(prompts)
    # After a change of weights nothing is found.
    hits = metric("hit_tokens")
    engine.llm_engine.engine_core.engine_core.reset_prefix_cache(reset_connector=True)
    results["reset"] = tokens(prompts)
    results["hits_after_reset"] = metric("hit_tokens") - hits
    print("RESULTS " + json.dumps(results))
"""


def test_blocks_that_are_gone_when_they_are_to_be_copied(keeper, folder, model, wanted):
    prompts = [SYSTEM + tail(i) for i in range(3)]
    ran = subprocess.run(
        [sys.executable, "-c", FAILING, str(model), json.dumps(transfer(keeper.store)), json.dumps(prompts)],
        env=environment(), capture_output=True, text=True, timeout=200,
    )
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    line = [line for line in ran.stdout.splitlines() if line.startswith("RESULTS ")][0]
    results = json.loads(line.removeprefix("RESULTS "))
    for name in ("first", "failing", "after", "again", "last", "reset"):
        assert results[name] == wanted["system"][:3], name
    assert results["failed"] >= 6 and results["hits_after_reset"] == 0


def test_an_engine_says_at_its_start_what_is_not_supported(keeper, start):
    server = start("seedless", transfer(keeper.store), "--prefix-caching-hash-algo", "xxhash")
    assert server.process.wait(200) != 0
    assert "without PYTHONHASHSEED" in server.text()


def config(**changes) -> SimpleNamespace:
    """The part of vLLM's configuration that the connector looks at."""
    parallel = {"pipeline_parallel_size": 1, "decode_context_parallel_size": 1}
    return SimpleNamespace(
        parallel_config=SimpleNamespace(**{**parallel, **changes.get("parallel", {})}),
        speculative_config=changes.get("speculative"),
        cache_config=SimpleNamespace(
            prefix_caching_hash_algo="sha256",
            enable_prefix_caching=changes.get("prefix_caching", True),
        ),
    )


def cache(*kinds: str) -> SimpleNamespace:
    groups = [SimpleNamespace(kv_cache_spec=type(kind, (), {})()) for kind in kinds]
    return SimpleNamespace(kv_cache_groups=groups)


@pytest.mark.parametrize(
    ("changes", "kinds", "text"),
    [
        ({"parallel": {"pipeline_parallel_size": 2}}, ["FullAttentionSpec"], "pipeline_parallel_size 2; 1 is allowed"),
        ({"parallel": {"decode_context_parallel_size": 4}}, ["FullAttentionSpec"], "decode_context_parallel_size 4"),
        ({}, ["FullAttentionSpec", "MambaSpec"], "caches of 2 groups .*--disable-hybrid-kv-cache-manager"),
        ({"prefix_caching": False}, ["MLAAttentionSpec"], "engines without prefix caching"),
        ({}, ["SlidingWindowSpec"], "caches of SlidingWindowSpec; FullAttentionSpec and MLAAttentionSpec"),
        (
            {"speculative": SimpleNamespace(use_eagle=lambda: True, method="eagle")},
            ["FullAttentionSpec"],
            "speculative decoding by eagle",
        ),
    ],
)
def test_what_is_not_supported_is_refused(changes, kinds, text):
    with pytest.raises(ValueError, match=text):
        pool_settings.check_support(config(**changes), cache(*kinds))
    pool_settings.check_support(config(), cache("FullAttentionSpec"))


def test_settings_that_are_not_known_are_refused():
    transfer = SimpleNamespace(
        kv_connector_extra_config={"shares": 1}, is_kv_consumer=True, is_kv_producer=False
    )
    with pytest.raises(ValueError, match="has shares; allowed are store_url, share"):
        pool_settings.PoolSettings.of(transfer)
    transfer.kv_connector_extra_config = {"share": "3M"}
    settings = pool_settings.PoolSettings.of(transfer)
    assert (settings.share, settings.loads, settings.stores) == ("3M", True, False)
