# SPDX-License-Identifier: Apache-2.0
"""`vllm serve` as its users start it, and requests to it over HTTP."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any

_START_S = 240
_CALL_S = 120


def free_port() -> int:
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(**more: str) -> dict[str, str]:
    """What an engine needs on a machine of two cores without a network."""
    return {
        **os.environ,
        "VLLM_CPU_KVCACHE_SPACE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
        "VLLM_NO_USAGE_STATS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        **more,
    }


class RequestFailed(Exception):
    """The server answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text[:500]}")
        self.status = status


class Server:
    """One engine. ``transfer`` is the value of ``--kv-transfer-config``."""

    def __init__(
        self,
        model: pathlib.Path,
        log: pathlib.Path,
        transfer: dict[str, Any] | None = None,
        *arguments: str,
        block_size: int = 32,
        max_len: int = 1024,
        dtype: str = "float32",
        blocks: int | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.port = free_port()
        self.log = log
        command = [sys.executable, "-m", "vllm.entrypoints.cli.main", "serve", str(model)]
        command += ["--served-model-name", "tiny", "--host", "127.0.0.1", "--port", str(self.port)]
        command += ["--enforce-eager", "--max-model-len", str(max_len), "--max-num-seqs", "32"]
        command += ["--block-size", str(block_size), "--dtype", dtype]
        if blocks is not None:
            command += ["--num-gpu-blocks-override", str(blocks)]
        if transfer is not None:
            command += ["--kv-transfer-config", json.dumps(transfer)]
        self._output = log.open("wb")
        self.process = subprocess.Popen(
            [*command, *arguments],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=environment(**(env or {})),
            start_new_session=True,
        )

    def text(self) -> str:
        """What it has printed."""
        return self.log.read_text(errors="replace")

    def wait_until_ready(self) -> "Server":
        """AssertionError with its last lines when it does not come up."""
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            assert self.process.poll() is None, self.text()[-4000:]
            try:
                if self.get("/health")[0] == 200:
                    return self
            except OSError:
                pass
            time.sleep(0.2)  # between questions
        raise AssertionError(f"not up in {_START_S} s: {self.text()[-4000:]}")

    def get(self, path: str) -> tuple[int, str]:
        """(status, text)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def metric(self, name: str) -> float:
        """The sum of a counter's or gauge's samples."""
        total = 0.0
        for line in self.get("/metrics")[1].splitlines():
            if line.startswith((name + "{", name + " ")):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def post(self, path: str, body: dict[str, Any], timeout_s: float = _CALL_S) -> dict[str, Any]:
        """The answer. RequestFailed for an error, OSError when the server is gone, TimeoutError."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            raise RequestFailed(answer.status, text)
        return json.loads(text) if text else {}

    def complete(
        self,
        prompt: list[int],
        tokens: int = 16,
        params: dict[str, Any] | None = None,
        timeout_s: float = _CALL_S,
        **more: Any,
    ) -> dict[str, Any]:
        """Greedy tokens after the prompt: the answer, whose choice has ``token_ids``."""
        body = {
            "model": "tiny",
            "prompt": prompt,
            "max_tokens": tokens,
            "temperature": 0,
            "ignore_eos": True,
            "return_token_ids": True,
            **more,
        }
        if params is not None:
            body["kv_transfer_params"] = params
        return self.post("/v1/completions", body, timeout_s)

    def tokens(self, *arguments: Any, **more: Any) -> list[int]:
        """The token ids of ``complete``."""
        return self.complete(*arguments, **more)["choices"][0]["token_ids"]

    def is_healthy(self) -> bool:
        """Whether the engine behind the server is alive."""
        try:
            return self.process.poll() is None and self.get("/health")[0] == 200
        except OSError:
            return False

    def kill(self) -> None:
        """kill -9 of the server and of its engine's processes."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait(30)

    def close(self) -> None:
        """Ends it as its user would, and kills what does not end."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                pass
        self.kill()
        self._output.close()


def all_at_once(calls: list[Any]) -> list[Any]:
    """What the functions return or raise, each on a thread of its own."""
    results: list[Any] = [None] * len(calls)

    def run(at: int) -> None:
        try:
            results[at] = calls[at]()
        except Exception as error:  # noqa: BLE001: the caller looks
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
