#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time to the first token of a prompt whose prefix is in the KV pool, against computing it, in real vLLM engines.

    python pool_prefix.py [--rounds 7] [--tokens 300 2000] [--record FILE]

Two engines of one model with random weights, which is made first (at least 100 million parameters): ``plain`` has no
pool, ``pooled`` has one, whose memory a process of its own gives. A round has a new prompt: both compute it, in turns who
begins, and pooled puts its blocks into the pool; then pooled forgets its own cache and gets the same prompt again, whose
blocks it copies. The table has medians and quartiles, and the ratio plain / found made within each round. Every first
token is checked to be the same in the three.

--start-on FILE: begins to measure when that file is there, for a machine that others use until then.
"""

import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import page  # noqa: E402
from page import record  # noqa: E402

SHAPE = {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12,
         "num_key_value_heads": 4, "vocab_size": 16000}  # 128 million parameters
BLOCK = 32
TARGETS = {300: 1 / 3, 2000: 1 / 10}  # of found over computed, by tokens


def make_model(folder, dtype):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    model = LlamaForCausalLM(LlamaConfig(max_position_embeddings=4096, initializer_range=0.1, **SHAPE))
    model.to(getattr(torch, dtype)).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "torch_dtype": dtype}))
    return sum(parameter.numel() for parameter in model.parameters())


# ---- an engine: a line "TOKENS SEED" on its input gives a line "SECONDS TOKEN CACHED_TOKENS", after it has forgotten
# its own cache


def engine(model, store):
    import random

    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    lines = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    from vllm import LLM, SamplingParams
    from vllm.config import KVTransferConfig

    more = {}
    if store:
        more["kv_transfer_config"] = KVTransferConfig(
            kv_connector="MemspanPoolConnector",
            kv_connector_module_path="memspan.connectors.vllm_pool",
            kv_role="kv_both",
            kv_connector_extra_config={"store_url": store, "largest_share": "1G"},
        )
    made = LLM(model, enforce_eager=True, skip_tokenizer_init=True, block_size=BLOCK, max_model_len=4096,
               max_num_batched_tokens=4096, **more)
    sampling = SamplingParams(max_tokens=1, temperature=0)

    def first_token(tokens, seed):
        drawn = random.Random(seed)
        prompt = {"prompt_token_ids": [drawn.randrange(10, SHAPE["vocab_size"]) for _ in range(tokens)]}
        made.reset_prefix_cache()
        begin = time.perf_counter()
        output = made.generate([prompt], sampling, use_tqdm=False)[0]
        return time.perf_counter() - begin, output.outputs[0].token_ids[0], output.num_cached_tokens or 0

    first_token(100, -1)
    print("ready", file=lines, flush=True)
    for line in sys.stdin:
        print(*first_token(*map(int, line.split())), file=lines, flush=True)


class Engine:
    def __init__(self, model, store, threads):
        env = {**os.environ, "VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": str(threads),
               "VLLM_CPU_OMP_THREADS_BIND": "nobind", "HF_HUB_OFFLINE": "1", "VLLM_LOGGING_LEVEL": "ERROR",
               "VLLM_NO_USAGE_STATS": "1"}
        self.process = subprocess.Popen([sys.executable, __file__, "--engine", str(model), store], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)

    def wait_until_ready(self):
        if self.process.stdout.readline() != "ready\n":
            sys.exit("pool_prefix: an engine did not start; run it by hand: pool_prefix.py --engine MODEL STORE")

    def ask(self, tokens, seed):
        print(tokens, seed, file=self.process.stdin, flush=True)
        seconds, token, cached = self.process.stdout.readline().split()
        return float(seconds), int(token), int(cached)


def measure(engines, tokens, rounds):
    """{what: [seconds of each round]}; one round before is not counted."""
    plain, pooled = engines
    times = {"computed": [], "put": [], "found": []}
    for turn in range(rounds + 1):
        seed = tokens * 1000 + turn
        order = [("computed", plain), ("put", pooled)]
        if turn % 2:
            order.reverse()
        results = {name: made.ask(tokens, seed) for name, made in [*order, ("found", pooled)]}
        if len({token for _, token, _ in results.values()}) != 1:
            sys.exit(f"pool_prefix: the first tokens differ: {results}")
        cached = [results[name][2] for name in times]
        if cached != [0, 0, (tokens - 1) // BLOCK * BLOCK]:
            sys.exit(f"pool_prefix: of {tokens} tokens there were cached {cached}")
        for name in times:
            if turn > 0:
                times[name].append(results[name][0])
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tokens", type=int, nargs="+", default=[300, 2000])
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of each engine")
    parser.add_argument("--dtype", default="bfloat16")
    record.option(parser)
    parser.add_argument("--start-on")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        parameters = make_model(folder, options.dtype)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            store = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
        keeper = subprocess.Popen([sys.executable, "-m", "memspan.kv_pool", "--store", store, "--share", "1G",
                                   "--largest-share", "1G"], stdout=subprocess.PIPE, text=True)
        keeper.stdout.readline()
        engines = [Engine(folder, where, options.threads) for where in ("", store)]
        try:
            for made in engines:
                made.wait_until_ready()
            print(f"{parameters / 1e6:.0f} million parameters, {options.dtype}, {options.threads} threads", flush=True)
            while options.start_on and not os.path.exists(options.start_on):
                time.sleep(0.1)
            results = {tokens: measure(engines, tokens, options.rounds) for tokens in options.tokens}
        finally:
            for made in engines:
                made.process.kill()
                made.process.wait()
            keeper.terminate()
            keeper.wait()
    rows = []
    for tokens, times in results.items():
        us = {what: [value * 1e6 for value in values] for what, values in times.items()}
        print(f"{tokens} tokens: computed and put in {statistics.median(times['put']) * 1e3:.1f} ms", flush=True)
        rows.append(record.of_rounds(f"first token of a prompt of {tokens:,} tokens", "us", us["found"], us["computed"], target=TARGETS.get(tokens)))
    command = f"build/engines/bin/python benchmarks/engines/pool_prefix.py --rounds {options.rounds} --threads {options.threads}"
    one = record.table("vLLM computing the prompt again", command, "computing", {name: version(name) for name in ("memspan", "vllm-cpu")}, rows)
    page.show(one)
    if options.record:
        record.add(options.record, "kv-pool", one)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--engine"]:
        engine(*sys.argv[2:])
    else:
        main()
