# SPDX-License-Identifier: Apache-2.0
"""memspan-top."""

import contextlib
import fcntl
import json
import os
import pty
import re
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
            self.assertRegex(text, r"(?m)^ +RANK .* CALLS +BYTES +WAITED WAITS IN$")
            self.assertRegex(text, r"(?m)^ +0 .* 1\.6\dk +13\.6k +\d+\.\d s shmem_barrier_all for PE 1, ")
            self.assertNotIn("MEMSPAN_COUNTERS", text)
            self.assertEqual(end(job), (0, ""))
            self.assertEqual([found for found in groups() if found["name"] == group["name"]], [])

    def test_waits_are_told_without_counting(self):
        with watched(2) as job:
            group = wait_until_told(job, 0)
            for member in group["members"]:
                self.assertFalse(member["counted"])
                self.assertEqual({count["calls"] for count in member["calls"].values()}, {0})
            self.assertIn("MEMSPAN_COUNTERS=1 counts calls", top("--once", "--interval", "0", group["name"]))

    def test_the_longest_wait_comes_first_without_counting(self):
        with watched(4) as job:
            name = wait_until_told(job, 0, 2, 3)["name"]
            (group,) = groups("--sort", "waits", name)
            self.assertEqual(group["members"][3]["rank"], 1)  # waits for nobody
            waited = [member["waiting"][0]["seconds"] for member in group["members"][:3]]
            self.assertEqual(waited, sorted(waited, reverse=True))

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
            self.assertRegex(text, r"(?m)^ +RANK .* CALLS/s +BYTES/s +WAIT WAITS IN$")
            self.assertRegex(text, r"(?m)^ +0 +\d+ .* waits .* 0 +0 +\d+% shmem_barrier_all")

    def test_lines_of_json_have_their_time(self):
        before = time.time()
        line = json.loads(top("--once", "--json", "--interval", "0"))
        self.assertTrue(before - 0.001 <= line["time"] <= time.time() + 0.001, (before, line["time"]))

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

    def test_a_member_of_a_pool_that_is_killed(self):
        with contextlib.ExitStack() as stack:
            url = f"tcp://127.0.0.1:{free_port()}"
            members = []
            for rank in range(2):
                member = subprocess.Popen([WATCHED, "pool", url, str(rank), "4"], stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, env=environment())
                members.append(stack.enter_context(member))
                stack.callback(member.kill)
                self.assertEqual(read_lines(member.stdout, 1), ["ready"])
            name = f"bm/7@{url}"
            self.assertIn(f"pool {name}: 2 members seen here (room for 4)\n", top("--once", "--interval", "0", name))
            seen = stack.enter_context(subprocess.Popen([TOP, "--json", "--interval", "0.1", name],
                                                        stdout=subprocess.PIPE))
            stack.callback(seen.kill)

            def is_told(*states):
                (group,) = json.loads(read_lines(seen.stdout, 1)[0])["groups"]
                return [member["state"] == "gone" for member in group["members"]] == list(states)

            until(SECONDS, "two members", lambda: is_told(False, False))
            members[1].kill()
            until(SECONDS, "one of them has gone", lambda: is_told(False, True))
            self.assertTrue(is_told(False, True), "it does not stay")
            self.assertIn(f"pool {name}: 1 member seen here (room for 4)\n", top("--once", "--interval", "0", name))
            members[0].stdin.close()
            until(SECONDS, "the pool has gone", lambda: json.loads(read_lines(seen.stdout, 1)[0])["groups"] == [])

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
        self.resize(24, 160)
        self.before = termios.tcgetattr(self.theirs)
        self.text = ""

    def tearDown(self):
        os.close(self.ours)
        os.close(self.theirs)

    def resize(self, rows, columns):
        self.rows = rows
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, what):
        self.read_until_so(lambda: what in self.text, repr(what))

    def read_until_so(self, is_so, what):
        deadline = time.monotonic() + SECONDS
        while not is_so():
            self.assertLess(time.monotonic(), deadline, f"no {what} in {self.text!r}")
            if select.select([self.ours], [], [], 0.1)[0]:
                self.text += os.read(self.ours, 65536).decode()

    def screen(self):
        """The lines of the last whole screen; of none before the first."""
        for frame in reversed(self.text.split("\x1b[H")[1:]):
            lines = [line.removesuffix("\x1b[K") for line in re.split("\r+\n", frame)]
            if lines[-1].startswith("\x1b[J"):
                return lines[:-1]
            if len(lines) == self.rows and frame.endswith("\x1b[K"):
                return lines
        return []

    def see(self, pattern):
        """The first screen from now on that has such a line."""
        self.read_until_so(lambda: any(re.search(pattern, line) for line in self.screen()), pattern)
        return self.screen()

    def press(self, keys):
        self.text = ""
        os.write(self.ours, keys.encode())

    @contextlib.contextmanager
    def start(self, *options, interval="0.2"):
        with subprocess.Popen([TOP, "--interval", interval, *options], stdin=self.theirs, stdout=self.theirs,
                              stderr=self.theirs) as shown:
            try:
                yield shown
            finally:
                shown.kill()

    def check_end(self, ended):
        self.assertEqual(ended.wait(SECONDS), 0)
        self.read_until("\x1b[?1049l")
        self.assertEqual(termios.tcgetattr(self.theirs), self.before)

    def test_keys(self):
        with watched(2, MEMSPAN_COUNTERS="1") as job, self.start() as shown:
            self.read_until("sorted by rank")
            self.read_until("shmem_barrier_all for PE 1")
            for key, order in (("c", "calls"), ("b", "bytes"), ("w", "waits"), ("s", "rank"), ("s", "calls")):
                self.press(key)
                self.read_until(f"sorted by {order}")
            os.write(self.ours, b"q")
            self.check_end(shown)
            del job

    def test_narrow_terminals_show_who_waits_for_whom(self):
        with watched(2, MEMSPAN_COUNTERS="1") as job:
            name = wait_until_told(job, 0)["name"]
            self.resize(24, 80)
            with self.start(name) as shown:
                wait = r"^ +0 +\d+ waits .* \d+% shmem_barrier_all for PE 1, \d+\.\d s$"
                lines = self.see(wait)
                self.assertLessEqual(max(map(len, lines)), 80)
                self.assertEqual(lines[1].split(), ["RANK", "PID", "STATE", "WAIT", "WAITS", "IN"])
                self.press("c")
                lines = self.see("sorted by calls")
                self.assertEqual(lines[1].split(), ["RANK", "PID", "STATE", "CALLS/s", "WAITS", "IN"])
                self.press("r")
                for columns, words in ((50, "STATE"), (120, "STATE MEMORY CALLS/s BYTES/s WAIT"),
                                       (160, "COMMAND STATE MEMORY CALLS/s BYTES/s WAIT")):
                    self.resize(24, columns)
                    lines = self.see(f"^ +RANK +PID +{' +'.join(words.split())} +WAITS IN$")
                    self.assertLessEqual(max(map(len, lines)), columns)
                    self.assertTrue(any(re.search(r" for PE 1, \d+\.\d s$", line) for line in lines), lines)
                self.press("q")
                self.check_end(shown)

    def test_scrolling(self):
        with watched(6) as job:
            name = wait_until_told(job, 0, 2, 3, 4, 5)["name"]
            self.resize(8, 80)  # the title, two lines more, an empty one, the job's, ranks 0 and 1, what is missing
            with self.start(name, interval="600") as shown:
                def ranks(missing):
                    """Of the lines that are seen; the title stays."""
                    lines = self.see("^" + re.escape(missing))
                    self.assertRegex(lines[0], "sorted by rank")
                    self.assertRegex(lines[2], "^ +RANK ")
                    self.assertEqual(len(lines), 8)
                    return [int(line[:6]) for line in lines[3:-1] if re.match(" +[0-9]", line)]

                self.assertEqual(ranks("... 4 more below"), [0, 1])
                for keys, missing, seen in (("j", "... 3 more below, 1 above", [0, 1, 2]),
                                            ("\x1b[B", "... 2 more below, 2 above", [0, 1, 2, 3]),
                                            ("\x1b[A", "... 3 more below, 1 above", [0, 1, 2]),
                                            ("\x1b[6~", "... 4 more above", [2, 3, 4, 5]),
                                            ("\x1bOB", "... 4 more above", [2, 3, 4, 5]),
                                            ("k", "... 1 more below, 3 above", [1, 2, 3, 4]),
                                            ("\x1b[5~", "... 4 more below", [0, 1])):
                    with self.subTest(keys):
                        self.press(keys)
                        self.assertEqual(ranks(missing), seen)
                self.press("\x1b[6~")
                ranks("... 4 more above")
                self.text = ""
                self.resize(24, 80)
                shown.send_signal(signal.SIGWINCH)
                lines = self.see("^ +5 ")
                self.assertEqual(len(lines), 3 + 2 + 6)
                self.press("q")
                self.check_end(shown)

    def test_a_name_that_nobody_has(self):
        with watched(2) as job:
            name = wait_until_told(job, 0)["name"]
            with self.start("nosuch") as shown:
                self.see('^no job, pool, endpoint or member process "nosuch"; there are:$')
                self.see(f"^  job {name}$")
                self.press("q")
                self.check_end(shown)

    def test_a_signal_leaves_the_terminal_as_it_was(self):
        with self.start() as shown:
            self.read_until("sorted by rank")
            shown.terminate()
            self.check_end(shown)
