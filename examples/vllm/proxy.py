# SPDX-License-Identifier: Apache-2.0
"""One address for prefill and decode engines of vLLM that share KV blocks by memspan.

    python proxy.py --port 8000 --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8200

A completion goes to a prefill engine for one token first, and then, with the ``kv_transfer_params`` that came
back, to a decode engine, whose answer is passed on as it comes. Several engines of a kind take turns. When no
prefill engine answers, the decode engine computes the prompt itself. Everything else goes to a decode engine.
"""

import argparse
import http.client
import http.server
import itertools
import json
import sys
import urllib.parse

TIMEOUT_S = 600
COMPLETIONS = ("/v1/completions", "/v1/chat/completions")


class Engines:
    """Engines that take turns."""

    def __init__(self, addresses):
        self._turns = itertools.cycle([urllib.parse.urlsplit(address).netloc for address in addresses])

    def send(self, method, path, body, headers):
        """(connection, answer) of the next one. OSError or HTTPException when it is not there."""
        connection = http.client.HTTPConnection(next(self._turns), timeout=TIMEOUT_S)
        kept = {name: headers[name] for name in ("Authorization", "X-Request-Id") if headers.get(name)}
        connection.request(method, path, body, {"Content-Type": "application/json", **kept})
        return connection, connection.getresponse()


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    prefill = decode = None  # Engines

    def params_of_prefill(self, request):
        """What the decode engine needs to read the blocks; None: it computes the prompt."""
        first = {
            **request,
            "max_tokens": 1,
            "stream": False,
            "kv_transfer_params": {"do_remote_decode": True, "do_remote_prefill": False},
        }
        first.pop("stream_options", None)
        if "max_completion_tokens" in first:
            first["max_completion_tokens"] = 1
        try:
            connection, answer = self.prefill.send("POST", self.path, json.dumps(first), self.headers)
            try:
                text = answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            print(f"proxy: no prefill: {error}", file=sys.stderr, flush=True)
            return None
        if answer.status != 200:
            print(f"proxy: prefill answered {answer.status}: {text[:200]!r}", file=sys.stderr, flush=True)
            return None
        return json.loads(text).get("kv_transfer_params")

    def pass_on(self, method, body):
        """The decode engine's answer, in chunks as they come."""
        try:
            connection, answer = self.decode.send(method, self.path, body, self.headers)
        except (OSError, http.client.HTTPException) as error:
            self.send_error(502, f"no decode engine: {error}")
            return
        try:
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.getheader("Content-Type", "application/json"))
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while chunk := answer.read1(1 << 16):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.write(b"0\r\n\r\n")
        finally:
            connection.close()

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path in COMPLETIONS:
            try:
                request = json.loads(body)
            except ValueError as error:
                self.send_error(400, f"the body is no JSON: {error}")
                return
            if not isinstance(request, dict):
                self.send_error(400, "the body is no JSON object")
                return
            request.pop("kv_transfer_params", None)  # they name engines: nothing for clients
            params = self.params_of_prefill(request)
            if params is not None:
                request["kv_transfer_params"] = params
            body = json.dumps(request)
        self.pass_on("POST", body)

    def do_GET(self):
        self.pass_on("GET", None)

    def log_message(self, *arguments):
        pass


def main():
    parser = argparse.ArgumentParser(description="One address for prefill and decode engines of vLLM")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--prefill", action="append", required=True, metavar="http://HOST:PORT")
    parser.add_argument("--decode", action="append", required=True, metavar="http://HOST:PORT")
    options = parser.parse_args()
    Proxy.prefill, Proxy.decode = Engines(options.prefill), Engines(options.decode)
    server = http.server.ThreadingHTTPServer((options.host, options.port), Proxy)
    print(f"proxy: http://{options.host}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
