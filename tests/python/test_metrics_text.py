# SPDX-License-Identifier: Apache-2.0
"""What the metrics endpoints write, read by Prometheus's own parser."""

import subprocess
import urllib.request

import jobs
from memspan.programs import path_of
from prometheus_client.parser import text_string_to_metric_families


def families_of(*command):
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
        try:
            port = int(server.stdout.readline().rpartition(b" ")[2])
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=jobs.LIMIT_S) as answer:
                text = answer.read().decode()
        finally:
            server.terminate()
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_the_store():
    families = families_of(path_of("memspan-store"), "--plain", "--metrics", "127.0.0.1:0")
    assert families["memspan_store_requests"].type == "counter"
    assert families["memspan_store_members"].samples[0].value == 0
    assert all(family.documentation for family in families.values())


def test_the_processes_of_a_host():
    families = families_of(path_of("memspan-top"), "--metrics", "127.0.0.1:0")
    assert families["memspan_calls"].type == "counter"
    assert families["memspan_memory_bytes"].type == "gauge"
