# SPDX-License-Identifier: Apache-2.0
"""memspan-explain finds the remedy of real messages, pasted as they were printed, and never another one."""

import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from jobs import launcher

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))

import remedies  # noqa: E402

EXPLAIN = os.environ["MEMSPAN_EXPLAIN"]
EXPLAINED = os.environ["MEMSPAN_EXPLAINED"]  # explained.c
STORE = os.environ["MEMSPAN_STORE_TOOL"]
INFO = os.environ["MEMSPAN_INFO"]
HAS_TLS = os.environ["MEMSPAN_HAS_TLS"] in ("ON", "1", "TRUE")
HAS_ETCD = os.environ["MEMSPAN_HAS_ETCD"] in ("ON", "1", "TRUE")
REMEDIES = {remedy.identifier: remedy for remedy in remedies.remedies()}
LIMIT_S = 60


def explain(*words, text=None):
    """(code, stdout, stderr)"""
    done = subprocess.run([EXPLAIN, *words], input=text, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    return done.returncode, done.stdout, done.stderr


def printed_by(*command, **variables):
    """What it prints before it ends."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=LIMIT_S, check=False,
                          stdin=subprocess.DEVNULL, env=launcher.environment(**variables))
    return done.stdout + done.stderr


def failing(case, *more, **variables):
    return printed_by(EXPLAINED, case, *more, **variables)


def job(ranks, *words, **variables):
    _, out, errors = launcher.run("-n", ranks, *words, env=launcher.environment(**variables))
    return out + errors


def identifiers(printed):
    """The first line of each entry."""
    return [line for line in printed.splitlines() if line and not line.startswith(" ")]


class Store:
    """A memspan-store that runs for the time of a test."""

    def __init__(self, test, *words):
        self.process = subprocess.Popen([STORE, "--listen", "tcp://127.0.0.1:0", *words], stdout=subprocess.PIPE, text=True,
                                        env=launcher.environment())
        test.addCleanup(self.end)
        self.url = self.process.stdout.readline().split()[-1]
        self.port = int(self.url.rpartition(":")[2])

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT_S)
        self.process.stdout.close()


class RealMessages(unittest.TestCase):
    def finds(self, message, *wanted):
        """The message, as it is, leads to these remedies."""
        code, out, errors = explain("-", text=message)
        self.assertEqual((code, errors), (0, ""), message)
        self.assertLessEqual(set(wanted), set(identifiers(out)), message)
        plain = " ".join(out.split())
        for identifier in wanted:
            self.assertIn(REMEDIES[identifier].meaning, plain)
            self.assertIn(REMEDIES[identifier].action, plain)

    def test_calls_of_a_program(self):
        for case, identifier in (
            ("early", "not-in-a-job"),
            ("pe", "pe-out-of-range"),
            ("local", "not-symmetric-memory"),
            ("full", "heap-full"),
            ("free", "not-allocated"),
            ("fork", "forked-child"),
        ):
            with self.subTest(case=case):
                self.finds(failing(case, SHMEM_SYMMETRIC_SIZE="64m"), identifier)

    def test_settings(self):
        for variables, identifier in (
            ({"SHMEM_SYMMETRIC_SIZE": "many"}, "wrong-value"),
            ({"RANK": "9", "WORLD_SIZE": "2", "MEMSPAN_STORE": "tcp://127.0.0.1:1"}, "wrong-value"),
            ({"SHMEM_SYMMETRIC_SIZE": "30t"}, "heap-too-large"),
        ):
            with self.subTest(variables=variables):
                self.finds(failing("none", **variables), identifier)
        self.finds(job(2, EXPLAINED, "limit", SHMEM_SYMMETRIC_SIZE="268m", MEMSPAN_MEMORY_LIMIT="300m"), "out-of-memory")

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "does not apply: this machine has a GPU")
    def test_no_gpu(self):
        self.finds(printed_by(INFO, "--devices", MEMSPAN_DEVICE="cuda"), "no-cuda-driver")

    def test_jobs(self):
        self.finds(job(2, EXPLAINED, "calls", SHMEM_DEBUG="1"), "calls-differ")
        self.finds(job(2, EXPLAINED, "kill"), "peer-lost", "process-killed")
        self.finds(job(2, EXPLAINED, "no_end"), "no-finalize")
        self.finds(job(2, "--simulate-hosts", 2, EXPLAINED, "none", MEMSPAN_TRANSPORT="mapped"), "no-common-transport")
        self.finds(job(1, "--timeout", 1, EXPLAINED, "wait"), "job-timeout")

    def test_the_launcher(self):
        cores = len(os.sched_getaffinity(0))
        for words, identifier in (
            (("-n", "1", "./no-such-program"), "program-not-found"),
            (("-n", "1", "no-such-program"), "program-not-found"),
            (("-n", "3", "--hosts", "a:1,b:1", "true"), "not-enough-slots"),
            (("-n", str(cores + 1), "--bind", "core", "true"), "too-few-cores"),
            (("-n", "2", "true"), "other-openshmem"),
        ):
            with self.subTest(words=words):
                self.finds(printed_by(launcher.OSHRUN, *words), identifier)
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (150, 150))  # noqa: E731
        _, _, errors = launcher.run("-n", 60, "--label", "true", preexec_fn=few)
        self.finds(errors, "too-few-open-files")

    def test_a_host_without_oshrun(self):
        words = ("-n", "2", "--hosts", "localhost:1,192.0.2.1:1", "--remote-shell", "false", "true")
        printed = printed_by(launcher.OSHRUN, *words)
        if "no interface has an address" in printed:
            self.skipTest("does not apply: no interface of this machine has an address")
        self.finds(printed, "host-unreachable")

    def test_the_start_without_a_launcher(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
            one_of_two = {"WORLD_SIZE": "2", "MEMSPAN_INIT_TIMEOUT": "1"}
            silent = {"RANK": "1", "MEMSPAN_STORE": f"tcp://127.0.0.1:{port}", **one_of_two}
            self.finds(failing("none", **silent), "no-store")
            taken.listen()
            self.finds(printed_by(STORE, "--listen", f"tcp://127.0.0.1:{port}"), "cannot-listen")
        self.finds(failing("none", RANK="1", MEMSPAN_STORE="tcp://no-such-host.invalid:8666", **one_of_two), "host-unknown", "no-store")
        store = Store(self)
        self.finds(failing("none", RANK="0", MEMSPAN_STORE=store.url, **one_of_two), "ranks-missing")

    def test_a_rank_twice(self):
        store = Store(self)
        variables = {"RANK": "0", "WORLD_SIZE": "2", "MEMSPAN_STORE": store.url, "MEMSPAN_INIT_TIMEOUT": "20"}
        first, second = (subprocess.Popen([EXPLAINED, "none"], stderr=subprocess.PIPE, text=True,
                                          env=launcher.environment(**variables)) for _ in range(2))
        # One of the two is refused; the other one waits for rank 1.
        self.addCleanup(lambda: [process.stderr.close() for process in (first, second)])
        refused, waits = self.first_to_end(first, second)
        waits.kill()
        waits.wait(LIMIT_S)
        self.finds(refused.stderr.read(), "rank-taken")

    def first_to_end(self, one, other):
        ended = []
        launcher.until(LIMIT_S, "one of the two ends", lambda: ended.extend(p for p in (one, other) if p.poll() is not None) or ended)
        return ended[0], other if ended[0] is one else one

    @unittest.skipUnless(HAS_TLS, "does not apply: built without TLS")
    def test_secrets(self):
        with tempfile.TemporaryDirectory() as folder:
            secret, other, readable = (pathlib.Path(folder, name) for name in ("secret", "other", "readable"))
            for path, mode in ((secret, 0o600), (other, 0o600), (readable, 0o644)):
                path.touch(mode)
                path.chmod(mode)
                path.write_text(path.name * 10)
            self.finds(printed_by(STORE, "--listen", "tcp://127.0.0.1:0", "--secret-file", readable), "private-file")
            store = Store(self, "--secret-file", str(secret))
            one_of_two = {"RANK": "0", "WORLD_SIZE": "2", "MEMSPAN_INIT_TIMEOUT": "3", "MEMSPAN_STORE": store.url}
            self.finds(failing("none", MEMSPAN_JOB_SECRET_FILE=str(other), **one_of_two), "certificate-refused")
            self.finds(failing("none", **one_of_two), "store-secret-differs")

    @unittest.skipUnless(HAS_ETCD, "does not apply: built without etcd")
    def test_etcd(self):
        variables = {"RANK": "0", "WORLD_SIZE": "2", "MEMSPAN_INIT_TIMEOUT": "1", "MEMSPAN_STORE": "etcd://127.0.0.1:1/job"}
        self.finds(failing("none", **variables), "etcd-unreachable")

    def test_memfabric(self):
        self.finds(failing("pool", "tcp://127.0.0.1:0"), "pool-size")
        self.finds(failing("transfer", Store(self).url), "no-endpoint", "not-registered")


class Texts(unittest.TestCase):
    MESSAGE = "memspan: PE 1: shmem_long_p: pe is 9, allowed are 0 to 3 [memspan-explain pe-out-of-range]"

    def test_it_knows_what_the_sources_declare(self):
        code, out, errors = explain()
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(identifiers(out), sorted(REMEDIES))
        for remedy in REMEDIES.values():
            code, out, errors = explain(remedy.identifier)
            self.assertEqual((code, errors), (0, ""))
            self.assertEqual(" ".join(out.split()), f"{remedy.identifier} {remedy.meaning} Do: {remedy.action}")
            self.assertLessEqual(max(map(len, out.splitlines())), 80)

    def test_the_words_of_a_message_do_not_matter(self):
        words = self.MESSAGE.split()
        for i in range(len(words) - 2):
            changed = " ".join([*words[:i], "else", *words[i + 1 :]])
            self.assertEqual(explain(changed), explain("pe-out-of-range"))
        self.assertEqual(explain(*words), explain("pe-out-of-range"))

    def test_lines_of_a_log(self):
        log = (
            "[1,0]<stdout>: step 4\n"
            f"2026-11-26 17:00:01 host7 app[12]: {self.MESSAGE}\n"
            "  1: oshrun: PE 0 (process 7) was killed by signal 9 (Killed) [memspan-explain\n     process-killed]\r\n"
            f"{self.MESSAGE}\n"
        )
        code, out, errors = explain("-", text=log)
        self.assertEqual((code, errors, identifiers(out)), (0, "", ["pe-out-of-range", "process-killed"]))
        self.assertEqual(explain("--bind core [memspan-explain too-few-cores]"), explain("too-few-cores"))

    def test_what_has_no_remedy(self):
        for text in ("pe is 9, allowed are 0 to 3", "heap full", "", "[memspan-explain "):
            code, out, errors = explain("-", text=text)
            self.assertEqual((code, out), (1, ""), text)
            self.assertIn("no identifier", errors)
            self.assertIn("docs/failures.md", errors)
        for words in (("heap",), ("x [memspan-explain heap]",)):
            code, out, errors = explain(*words)
            self.assertEqual((code, out), (1, ""), words)
            self.assertIn('"heap" is not an identifier', errors)

    def test_options(self):
        self.assertEqual(explain("--nonsense")[0], 2)
        code, out, errors = explain("--help")
        self.assertEqual((code, errors), (0, ""))
        self.assertTrue(out.startswith("Usage: memspan-explain"))
        with open("/dev/full", "w", encoding="ascii") as full:
            self.assertEqual(subprocess.run([EXPLAIN], stdout=full, check=False).returncode, 1)


if __name__ == "__main__":
    unittest.main()
