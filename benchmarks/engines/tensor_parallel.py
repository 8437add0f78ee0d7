#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM with tensor parallel 2 on the CPU: decoded tokens a second with memspan's collectives and with vLLM's own shared memory.

    python benchmarks/engines/tensor_parallel.py [--rounds 9] [--batches 1,8] [--json FILE]

needs the environment of scripts/test.sh engines (vLLM for the CPU and memspan). Both engines are up at the same time, and one is stopped
(SIGSTOP) while the other decodes, since vLLM's processes poll for a second after their last request; a round is a burst of each, and
who goes first changes with every round. The clock runs from when every request has its first token to when all have their last. The ratio is memspan's tokens a second to vLLM's within a round. The model is a Llama
with random weights (`--layers`, `--hidden`; 42 million parameters). All bursts of a batch must give the same tokens on both sides.
The exit code is 1 when they do not.
"""

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
SIDES = {"memspan": "1", "vllm": "0"}
START_S = 300
BURST_S = 120
PROMPT = 8  # tokens


# ---- an engine, in a process of its own


def make_model(folder, given):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=4096,
        hidden_size=given.hidden,
        intermediate_size=4 * given.hidden,
        num_hidden_layers=given.layers,
        num_attention_heads=given.hidden // 64,
        num_key_value_heads=given.hidden // 128,
        max_position_embeddings=1024,
        initializer_range=0.1,
        torch_dtype=given.dtype,
    )
    model = LlamaForCausalLM(config).to(getattr(torch, given.dtype))
    model.save_pretrained(folder)
    print(f"# {sum(p.numel() for p in model.parameters()) / 1e6:.0f} million parameters, {given.dtype}", flush=True)


def burst(engine, batch, tokens, number):
    """(seconds of the decoded tokens, how many, all token ids)"""
    from vllm import SamplingParams

    params = SamplingParams(max_tokens=tokens, temperature=0, ignore_eos=True, detokenize=False)
    for at in range(batch):
        engine.add_request(f"{number}-{at}", {"prompt_token_ids": [3 + at * 17 + i for i in range(PROMPT)]}, params)
    made, begin, first = {}, None, 0
    while engine.has_unfinished_requests():
        for output in engine.step():
            made[output.request_id] = output.outputs[0].token_ids
        if begin is None and len(made) == batch:
            begin, first = time.perf_counter(), sum(map(len, made.values()))
    seconds = time.perf_counter() - begin
    return seconds, sum(map(len, made.values())) - first, [list(ids) for _, ids in sorted(made.items())]


def be_engine(given):
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # vLLM's lines go to the log
    from vllm import LLM

    llm = LLM(
        model=given.model,
        skip_tokenizer_init=True,
        tensor_parallel_size=given.ranks,
        enforce_eager=not given.compiled,
        block_size=32,
        max_model_len=512,
        max_num_seqs=16,
        enable_prefix_caching=False,
        dtype=given.dtype,
    )
    print("up", file=answers)
    for number, line in enumerate(sys.stdin):
        batch, tokens = map(int, line.split())
        print(json.dumps(burst(llm.llm_engine, batch, tokens, number)), file=answers)
    answers.close()


# ---- the measurement


class Engine:
    """One side."""

    def __init__(self, name, model, given, folder):
        self.name = name
        self.log = folder / f"{name}.log"
        words = [sys.executable, str(Path(__file__).resolve()), "--model", str(model), *sys.argv[1:]]
        environment = {
            **os.environ,
            "MEMSPAN_VLLM_BACKEND": SIDES[name],
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "OMP_NUM_THREADS": "1",
            "VLLM_CPU_OMP_THREADS_BIND": given.bind,
            "HF_HUB_OFFLINE": "1",
            "VLLM_NO_USAGE_STATS": "1",
        }
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"the engine of {self.name} ended: {self.log.read_text(errors='replace')[-4000:]}")
        return line

    def burst(self, batch, tokens):
        print(batch, tokens, file=self.process.stdin, flush=True)
        return json.loads(self.answer())

    def signal(self, number):
        """To all its processes; they are in a session of their own, and vLLM's are daemons."""
        import psutil

        root = psutil.Process(self.process.pid)
        for process in [root, *root.children(recursive=True)]:
            process.send_signal(number)

    def close(self):
        self.signal(signal.SIGCONT)
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


def measure(engines, batch, given):
    """{side: [tokens a second of each round]}"""
    rates, expected = {name: [] for name in engines}, None
    order = list(engines)
    for number in range(given.rounds + 1):
        for name in order:
            engines[name].signal(signal.SIGCONT)
            seconds, count, tokens = engines[name].burst(batch, given.tokens)
            engines[name].signal(signal.SIGSTOP)
            expected = expected or tokens
            if tokens != expected:
                sys.exit(f"batch {batch}, round {number}: {name} gives other tokens")
            if number > 0:  # the first one warms both up
                rates[name].append(count / seconds)
        order.reverse()
    return rates


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high


def main():
    given = options()
    if given.model:
        return be_engine(given)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = folder / "model"
        make_model(model, given)
        engines, rows = {}, []
        try:
            for name in SIDES:
                engines[name] = Engine(name, model, given, folder)
                engines[name].answer()  # one after the other: starts take all cores
                engines[name].signal(signal.SIGSTOP)
            if given.hold:
                input("engines are up; a line begins the measurement\n")
            print("| batch | memspan, tokens/s | vLLM, tokens/s | ratio | quartiles |\n|---|---|---|---|---|")
            for batch in given.batches:
                rates = measure(engines, batch, given)
                low, middle, high = quartiles([ours / theirs for ours, theirs in zip(rates["memspan"], rates["vllm"])])
                medians = [statistics.median(rates[name]) for name in SIDES]
                print(f"| {batch} | {medians[0]:.1f} | {medians[1]:.1f} | {middle:.3f} | {low:.3f} - {high:.3f} |", flush=True)
                rows.append({"batch": batch, "rates": rates})
        finally:
            for engine in engines.values():
                engine.close()
            if given.keep_logs:
                for engine in engines.values():
                    (Path(given.keep_logs) / engine.log.name).write_bytes(engine.log.read_bytes())
        if given.json:
            given.json.write_text(json.dumps(rows, indent=1))


def options():
    def numbers(text):
        return tuple(int(word) for word in text.split(","))

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--batches", type=numbers, default=(1, 8), help="requests at once: 1,8")
    parser.add_argument("--tokens", type=int, default=48, help="of each request in a burst")
    parser.add_argument("--ranks", type=int, default=2, help="tensor parallel size")
    parser.add_argument("--layers", type=int, default=10)
    parser.add_argument("--hidden", type=int, default=512, help="a multiple of 256")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float32"))
    parser.add_argument("--bind", default="nobind", help="VLLM_CPU_OMP_THREADS_BIND, as 0|1")
    parser.add_argument("--compiled", action="store_true", help="with torch.compile instead of eager")
    parser.add_argument("--hold", action="store_true", help="wait for a line once the engines are up")
    parser.add_argument("--json", type=Path, metavar="FILE", help="every round")
    parser.add_argument("--keep-logs", metavar="FOLDER", help="where the engines' logs are put")
    parser.add_argument("--model", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
