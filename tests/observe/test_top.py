# SPDX-License-Identifier: Apache-2.0
"""memspan-top."""

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
import unittest

from jobs.launcher import SECONDS, environment, read_lines, until
from jobs.ports import free_port
from watched import DONE, TOP, WATCHED, end, groups, jobs_of, top, wait_until_told, watched


class TopTest(unittest.TestCase):
    def test_calls_bytes_memory_and_waits(self):
        with watched(3, MEMSPAN_COUNTERS="1", SHMEM_SYMMETRIC_SIZE="2m") as job:
            group = wait_until_told(job, 0, 2)
            self.assertEqual((group["kind"], group["size"]), ("job", 3))
            self.assertEqual([member["rank"] for member in group["members"]], [0, 1, 2])
            for member in group["members"]:
                calls = {kind: (count["calls"], count["bytes"]) for kind, count in member["calls"].items()}
                self.assertEqual({kind: calls[kind] for kind in DONE}, DONE)
                self.assertTrue(member["counted"])
                self.assertEqual(member["memory_bytes"], 2 << 20)
                self.assertEqual(member["memory_used"], 64 * 8 + 16)
                self.assertEqual(member["command"], os.path.basename(WATCHED)[:15])
            self.assertEqual(group["members"][0]["calls"]["collective"]["calls"], 5)  # the last goes on
            self.assertEqual(group["members"][1]["waiting"], [])
            wait = group["members"][0]["waiting"][0]
            self.assertEqual(wait["call"], "shmem_barrier_all")
            self.assertGreater(group["members"][0]["waited_seconds"], 0)
            text = top("--once", "--interval", "0", group["name"])
            self.assertRegex(text, r"(?m)^ +0 .*shmem_barrier_all for PE 1, ")
            self.assertEqual(end(job), (0, ""))
            self.assertEqual([found for found in groups() if found["name"] == group["name"]], [])

    def test_waits_are_told_without_counting(self):
        with watched(2) as job:
            group = wait_until_told(job, 0)
            for member in group["members"]:
                self.assertFalse(member["counted"])
                self.assertEqual({count["calls"] for count in member["calls"].values()}, {0})

    def test_ranks_that_are_lost_or_stopped(self):
        with watched(3, "--keep-going") as job:
            group = wait_until_told(job, 0, 2)
            pids = {member["rank"]: member["pid"] for member in group["members"]}
            os.kill(pids[2], signal.SIGSTOP)
            until(SECONDS, "PE 2 is stopped", lambda: jobs_of(job.pid)[0]["members"][2]["state"] == "stopped")
            os.kill(pids[1], signal.SIGKILL)
            until(SECONDS, "PE 1 is lost", lambda: jobs_of(job.pid)[0]["members"][1]["state"] == "lost")
            os.kill(pids[2], signal.SIGCONT)

    def test_rates(self):
        with watched(2, MEMSPAN_COUNTERS="1") as job:
            name = wait_until_told(job, 0)["name"]
            text = top("--once", "--interval", "0.2", name)
            self.assertRegex(text, r"(?m)^ +0 +\d+ .* waits .* 0 +0 +\d+% shmem_barrier_all")

    @contextlib.contextmanager
    def member_of_a_pool(self, what):
        """What memspan-top says of the one member."""
        with subprocess.Popen([WATCHED, what, f"tcp://127.0.0.1:{free_port()}"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, env=environment(MEMSPAN_COUNTERS="1")) as member:
            self.assertEqual(read_lines(member.stdout, 1), ["ready"])
            (group,) = groups(str(member.pid))
            self.assertEqual(group["kind"], "pool")
            self.assertRegex(group["name"], r"^bm/7@tcp://127\.0\.0\.1:\d+$")
            (row,) = group["members"]
            self.assertEqual(row["memory_bytes"], 4 << 20)
            yield row
            member.stdin.close()
            self.assertEqual(member.wait(SECONDS), 0)

    def test_a_pool(self):
        with self.member_of_a_pool("pool") as row:
            self.assertEqual(row["calls"]["copy"], {"calls": 1000, "bytes": 1000 * 4096})

    def test_blocks_by_key_and_groups(self):
        with self.member_of_a_pool("blocks") as row:
            self.assertEqual(row["calls"]["copy"], {"calls": 21, "bytes": 20 * 4096 + 1})
            self.assertEqual(row["calls"]["collective"], {"calls": 5, "bytes": 5 * 32})

    def test_what_is_typed_wrongly(self):
        for words in (["--interval", "0"], ["--interval", "-1"], ["--sort", "size"], ["-once"], ["a", "b"]):
            done = subprocess.run([TOP, *words], capture_output=True, timeout=SECONDS, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)
            self.assertIn(b"; see memspan-top --help", done.stderr)
        done = subprocess.run([TOP], stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"no", done.stderr)


class TerminalTest(unittest.TestCase):
    """On a real pseudo terminal."""

    def setUp(self):
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 160, 0, 0))
        self.before = termios.tcgetattr(self.theirs)
        self.text = ""

    def tearDown(self):
        os.close(self.ours)
        os.close(self.theirs)

    def read_until(self, what):
        deadline = time.monotonic() + SECONDS
        while what not in self.text:
            self.assertLess(time.monotonic(), deadline, f"no {what!r} in {self.text!r}")
            if select.select([self.ours], [], [], 0.1)[0]:
                self.text += os.read(self.ours, 65536).decode()

    def start(self, *options):
        return subprocess.Popen([TOP, "--interval", "0.2", *options], stdin=self.theirs, stdout=self.theirs,
                                stderr=self.theirs)

    def check_end(self, ended):
        self.assertEqual(ended.wait(SECONDS), 0)
        self.read_until("\x1b[?1049l")
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_keys(self):
        with watched(2, MEMSPAN_COUNTERS="1") as job, self.start() as shown:
            self.read_until("sorted by rank")
            self.read_until("shmem_barrier_all for PE 1")
            for key, order in (("c", "calls"), ("b", "bytes"), ("w", "waits"), ("s", "rank"), ("s", "calls")):
                self.text = ""
                os.write(self.ours, key.encode())
                self.read_until(f"sorted by {order}")
            os.write(self.ours, b"q")
            self.check_end(shown)
            del job

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        with self.start() as shown:
            self.read_until("sorted by rank")
            shown.terminate()
            self.check_end(shown)
