# SPDX-License-Identifier: Apache-2.0
"""What Prometheus is told: by the store, by a process, by memspan-top --metrics; and who takes too much."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import socket
import subprocess
import time
import unittest

from jobs.launcher import SECONDS, environment, read_lines, until
from jobs.ports import free_port
from watched import DONE, TOP, end, wait_until_told, watched

STORE = os.environ.get("MEMSPAN_STORE", "memspan-store")
DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "grafana" / "memspan.json"
MOST_REQUEST_BYTES = 8192  # kMostRequestBytes of src/net/metrics_server.cc
SAMPLE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')


def fetch(port, path="/metrics", method="GET"):
    """(status, type, text)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.getheader("Content-Type"), answer.read().decode()


def parse(text):
    """{name: {labels: value}}. Each has its HELP and TYPE before it, in whole lines."""
    found = {}
    told = set()
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("#"):
            _, what, name, _ = line.split(" ", 3)
            assert (what, name) not in told, line
            told.add((what, name))
            continue
        match = SAMPLE.fullmatch(line)
        assert match, line
        name, labels, value = match.groups()
        assert {("HELP", name), ("TYPE", name)} <= told, line
        found.setdefault(name, {})[tuple(re.findall(r'(\w+)="([^"]*)"', labels or ""))] = float(value)
    return found


@contextlib.contextmanager
def served(*command, **variables):
    """The process, and the port that it prints."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(**variables)) as process:
        try:
            (line,) = read_lines(process.stdout, 1)
            yield process, int(line.rpartition(" ")[2])
        finally:
            process.terminate()
            process.wait(SECONDS)


def store(*options):
    return served(STORE, "--plain", "--metrics", "127.0.0.1:0", *options)


class MetricsTest(unittest.TestCase):
    def test_the_store(self):
        with store() as (_, port):
            status, kind, text = fetch(port)
            self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
            metrics = parse(text)
            self.assertEqual(metrics["memspan_store_up"][()], 1)
            self.assertEqual(metrics["memspan_store_members"][()], 0)
            self.assertEqual(fetch(port, method="HEAD")[::2], (200, ""))
            self.assertEqual(fetch(port, "/other")[0], 404)
            self.assertEqual(fetch(port, method="POST")[0], 405)

    def test_all_processes_of_the_host(self):
        with watched(2, MEMSPAN_COUNTERS="1") as job, served(TOP, "--metrics", "127.0.0.1:0") as (_, port):
            name = wait_until_told(job, 0)["name"]  # jobs of other tests are seen, too

            def calls():
                samples = [(dict(labels), value) for labels, value in parse(fetch(port)[2])["memspan_calls_total"].items()]
                return {(labels["rank"], labels["kind"]): value for labels, value in samples if labels["name"] == name}

            until(SECONDS, "both are seen", lambda: len(calls()) == 14)
            for rank in ("0", "1"):
                self.assertEqual({kind: calls()[rank, kind] for kind in DONE},
                                 {kind: count for kind, (count, _) in DONE.items()})

    def test_a_process_of_its_own(self):
        port = free_port()
        with watched(1, MEMSPAN_COUNTERS="1", MEMSPAN_METRICS=f"127.0.0.1:{port}"):
            metrics = parse(fetch(port)[2])
            self.assertEqual(sum(metrics["memspan_bytes_total"].values()), sum(size for _, size in DONE.values()))

    def test_an_address_that_is_taken_is_no_reason_to_end(self):
        with store() as (_, port), watched(1, MEMSPAN_METRICS=f"127.0.0.1:{port}") as job:
            self.assertIn("no metrics of this process: ", job.stderr.readline().decode())
            self.assertEqual(end(job)[0], 0)

    def test_an_address_that_is_none(self):
        for place in ("9464", "localhost:1", "127.0.0.1:70000", "127.0.0.1:"):
            done = subprocess.run([STORE, "--plain", "--metrics", place], capture_output=True, timeout=SECONDS, check=False)
            self.assertEqual(done.returncode, 2, place)

    def test_beyond_the_loopback_interface_it_warns(self):
        with served(STORE, "--plain", "--metrics", "0.0.0.0:0") as (process, _):
            self.assertIn(b"any process that can connect to 0.0.0.0:0 can read the metrics", process.stderr.readline())

    def test_slow_and_hostile_clients(self):
        with store() as (process, port), contextlib.ExitStack() as held:
            def connect():
                return held.enter_context(contextlib.closing(socket.create_connection(("127.0.0.1", port), SECONDS)))

            slow = [connect() for _ in range(64)]
            for one in slow:
                with contextlib.suppress(OSError):
                    one.sendall(b"GET /metrics HTTP/1.1\r\n")
            self.assertEqual(fetch(port)[0], 200)  # the oldest has made room
            large = connect()
            # The byte that is too many is the last one: where the server leaves some unread, the kernel may reset
            # the connection before the answer is read.
            large.sendall(b"GET /metrics HTTP/1.1\r\nX: ".ljust(MOST_REQUEST_BYTES + 1, b"x"))
            self.assertTrue(large.recv(64).startswith(b"HTTP/1.1 431 "))
            larger = connect()
            with contextlib.suppress(OSError):
                larger.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 100000)
            begin = time.monotonic()
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(slow[-1].recv(1), b"")  # its time is over
            self.assertLess(time.monotonic() - begin, 10)
            self.assertLess(len(os.listdir(f"/proc/{process.pid}/fd")), 40)
            self.assertEqual(fetch(port)[0], 200)

    def test_each_query_of_the_dashboard_asks_for_what_there_is(self):
        with store() as (_, port):
            names = set(parse(fetch(port)[2]))
        with watched(1, MEMSPAN_COUNTERS="1"), served(TOP, "--metrics", "127.0.0.1:0") as (_, port):
            metrics = parse(fetch(port)[2])
            labels = {name: {label for sample in samples for label, _ in sample} for name, samples in metrics.items()}
        names |= set(metrics)
        dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
        queries += [one["query"] for one in dashboard["templating"]["list"] if one["type"] == "query"]
        self.assertGreater(len(queries), 15)
        asked = set()
        for query in queries:
            used = set(re.findall(r"memspan_\w+", query))
            self.assertTrue(used, query)
            self.assertEqual(used - names, set(), query)
            asked |= used
            for group in re.findall(r"by \(([^)]*)\)", query):
                for name in used & set(labels):
                    self.assertEqual({one.strip() for one in group.split(",")} - labels[name], set(), query)
        self.assertEqual(names - asked - {"memspan_build_info"}, set(), "nobody asks for these")
