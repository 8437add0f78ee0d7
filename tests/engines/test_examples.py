# SPDX-License-Identifier: Apache-2.0
"""examples/vllm as its README says: one script, and curl."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest
from support.disaggregation import prompt
from support.server import environment, free_port

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def curl(port, body, *arguments):
    done = subprocess.run(
        ["curl", "-s", "-S", "--max-time", "120", *arguments, "-H", "Content-Type: application/json",
         "-d", json.dumps(body), f"http://127.0.0.1:{port}/v1/completions"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


@pytest.fixture(scope="module")
def served(model, logs):
    """Ports of the proxy, prefill and decode of serve.sh."""
    ports = {name: free_port() for name in ("PROXY_PORT", "PREFILL_PORT", "DECODE_PORT", "STORE_PORT")}
    output = (logs / "serve.log").open("wb")
    process = subprocess.Popen(
        ["bash", str(EXAMPLES / "vllm" / "serve.sh"), str(model), "--served-model-name", "tiny",
         "--enforce-eager", "--max-model-len", "1024", "--dtype", "float32"],
        env=environment(PYTHON=sys.executable, LOGS=str(logs), **{k: str(v) for k, v in ports.items()}),
        stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
    )  # fmt: skip
    try:
        end = time.monotonic() + 240
        while "proxy: http" not in (logs / "serve.log").read_text():
            assert process.poll() is None and time.monotonic() < end, (logs / "serve.log").read_text()
            time.sleep(0.2)  # between looks
        yield ports
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 143
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        output.close()


def metrics(port):
    text = subprocess.run(
        ["curl", "-s", f"http://127.0.0.1:{port}/metrics"], capture_output=True, text=True, check=True
    ).stdout
    return {
        line.split("{")[0]: float(line.rsplit(" ", 1)[1])
        for line in text.splitlines()
        if line.startswith("memspan_kv_")
    }


def test_completions_by_curl(served):
    for seed in range(10):
        body = {"model": "tiny", "prompt": prompt(6000 + seed), "max_tokens": 8, "temperature": 0,
                "ignore_eos": True, "return_token_ids": True}  # fmt: skip
        through = json.loads(curl(served["PROXY_PORT"], body))["choices"][0]["token_ids"]
        alone = json.loads(curl(served["PREFILL_PORT"], body))["choices"][0]["token_ids"]
        assert through == alone
    assert metrics(served["DECODE_PORT"])["memspan_kv_read_seconds_count"] == 10
    assert metrics(served["DECODE_PORT"])["memspan_kv_failures_total"] == 0


def test_a_stream_by_curl(served):
    body = {"model": "tiny", "prompt": prompt(6100, 100), "max_tokens": 6, "temperature": 0,
            "ignore_eos": True, "stream": True}  # fmt: skip
    lines = [line for line in curl(served["PROXY_PORT"], body, "-N").splitlines() if line]
    assert len(lines) == 7 and lines[-1] == "data: [DONE]"


def test_what_is_wrong_is_told(served):
    assert "error" in json.loads(curl(served["PROXY_PORT"], {"model": "none", "prompt": [1, 2]}))
