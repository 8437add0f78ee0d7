# SPDX-License-Identifier: Apache-2.0
"""A store and its members on two hosts (network namespaces with a wire between them): nothing is
taken for granted there, and nothing is plain unless both sides were told so."""

import contextlib
import os
import subprocess
import tempfile
import unittest

from jobs.namespaces import Namespaces
from needs import needs

MEMBER = os.environ["MEMSPAN_STORE_MEMBER"]
LIMIT_S = 60
# A refusal is not tried again until the deadline of 5 s; a sanitizer takes longer to start.
REFUSED_WITHIN_MS = 2000
ADDRESSES = tuple(Namespaces(2).addresses)


class TwoHosts(Namespaces):
    """Two namespaces, and programs of a store in them."""

    def __init__(self):
        super().__init__(2)

    def start(self, host, *words, **environment):
        clean = {k: v for k, v in os.environ.items() if k != "MEMSPAN_JOB_SECRET_FILE"}
        return subprocess.Popen(
            ["ip", "netns", "exec", self.names[host], MEMBER, *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**clean, **environment},
        )

    @contextlib.contextmanager
    def store(self, *words, **environment):
        store = self.start(0, "serve", *words, **environment)
        try:
            line = store.stdout.readline().split()
            if not line or line[0] != "listening":
                raise AssertionError(f"no store: {line} {store.stdout.read()} {store.stderr.read()}")
            yield line[1]
        finally:
            store.communicate(timeout=LIMIT_S)

    def join(self, url, *words, host=1, **environment):
        """(exit code, stdout, stderr)"""
        member = self.start(host, "join", url, *words, **environment)
        try:
            out, err = member.communicate(timeout=LIMIT_S)
        finally:
            member.kill()
        return member.returncode, out, err


@needs("hosts")
class TwoHostsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()  # mode 0700
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.runtime = {"XDG_RUNTIME_DIR": cls.folder}
        cls.hosts = TwoHosts()
        cls.addClassCleanup(cls.hosts.close)
        cls.hosts.__enter__()

    def secret_file(self, text):
        handle, path = tempfile.mkstemp(dir=self.folder)  # mode 0600
        with os.fdopen(handle, "w") as file:
            file.write(text)
        return {**self.runtime, "MEMSPAN_JOB_SECRET_FILE": path}

    def expect_joined(self, result):
        self.assertEqual(result[0], 0, result)
        self.assertEqual(result[1], "joined v\n")

    def expect_refused(self, result, code, *parts):
        self.assertEqual(result[0], 1, result)
        took, refusal = result[1].splitlines()
        self.assertLess(int(took.split()[1]), REFUSED_WITHIN_MS, result)
        self.assertIn(f"refused {code}:", refusal)
        for part in parts:
            self.assertIn(part, refusal)

    def test_a_member_that_was_given_nothing_is_told_the_three_ways(self):
        with self.hosts.store(ADDRESSES[0], **self.runtime) as url:
            self.expect_refused(
                self.hosts.join(url, **self.runtime), "NOT_SUPPORTED",
                "MEMSPAN_JOB_SECRET_FILE", "shmem_set_conf_store_tls(true", "shmem_set_conf_store_tls(false",
            )
            self.expect_joined(self.hosts.join(url, host=0, **self.runtime))

    def test_the_same_secret_joins_them(self):
        secret = self.secret_file("the secret of two hosts")
        with self.hosts.store(ADDRESSES[0], **secret) as url:
            self.expect_joined(self.hosts.join(url, **secret))

    def test_another_secret_does_not(self):
        with self.hosts.store(ADDRESSES[0], **self.secret_file("the secret of two hosts")) as url:
            other = self.secret_file("the secret of others")
            self.expect_refused(self.hosts.join(url, **other), "AUTH")

    def test_plain_has_to_be_asked_for_on_both_and_is_warned_of(self):
        with self.hosts.store(ADDRESSES[0], "plain", **self.runtime) as url:
            joined = self.hosts.join(url, "plain", **self.runtime)
            self.expect_joined(joined)
            self.assertEqual(joined[2].count("is plain, as it was asked for"), 1, joined)
            self.assertEqual(len(joined[2].splitlines()), 1, joined)
            self.expect_refused(self.hosts.join(url, **self.runtime), "NOT_SUPPORTED")
            self.expect_refused(self.hosts.join(url, **self.secret_file("some secret or other")), "AUTH")
        with self.hosts.store(ADDRESSES[0], **self.secret_file("some secret or other")) as url:
            self.expect_refused(self.hosts.join(url, "plain", **self.runtime), "AUTH", "requires TLS")

    def test_a_store_of_loopback_is_not_there_for_another_host(self):
        with self.hosts.store("127.0.0.1", **self.runtime) as url:
            self.expect_joined(self.hosts.join(url, host=0, **self.runtime))
            code, out, _ = self.hosts.join(url, **self.runtime)
            self.assertEqual(code, 1)
            self.assertIn("Connection refused", out)


if __name__ == "__main__":
    unittest.main()
