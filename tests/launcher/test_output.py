# SPDX-License-Identifier: Apache-2.0
"""What the processes of a job print: when it comes, and that all of it comes."""
import hashlib
import os
import select
import signal
import subprocess
import tempfile
import time
import unittest

from jobs.launcher import OSHRUN, PROBE, PYTHON, SECONDS, run, start
from needs import require

# Prints, and then waits until somebody opens the other end of the file that it is told.
WAITING = 'import sys; print("one"); open(sys.argv[1]).close()'
# Says on stderr when everything is printed. -E leaves PYTHONUNBUFFERED out of it.
TALKATIVE = """
import signal, sys
for i in range(1800):
    print(f"line {i} of the rank, with some more words to make it longer")
sys.stderr.write("done\\n")
signal.pause()
"""


def read_until(stream, words, count=1):
    """Reads `stream` until it has had `words` that often."""
    seen = b""
    end = time.monotonic() + SECONDS
    while seen.count(words) < count:
        ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
        chunk = os.read(stream.fileno(), 65536) if ready else b""
        if not chunk:
            raise AssertionError(f"no {words!r} {count} times in {seen!r}")
        seen += chunk
    return seen


def mounting(script):
    """The words in front of a command that runs it by `script`, in a mount namespace of its own."""
    require("user_namespaces")
    return ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh")


class LiveTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.gate = os.path.join(folder.name, "gate")
        os.mkfifo(self.gate)
        self.file = os.path.join(folder.name, "output")

    def open_gate(self):
        with open(self.gate, "wb"):
            pass

    def check_live(self, expected, *command):
        job = start("-n", "1", *command, self.gate)
        read_until(job.stdout, expected)  # while the process waits
        self.open_gate()
        self.assertEqual(job.wait(SECONDS), 0)
        job.communicate()

    def test_a_line_comes_through_a_pipe_when_it_was_printed(self):
        self.check_live(b"one\n", PYTHON, "-E", "-c", WAITING)

    def test_a_line_of_c_as_well(self):
        self.check_live(b"one\n", PROBE, "print")

    def test_with_labels_too(self):
        self.check_live(b"[0] one\n", "--label", PYTHON, "-E", "-c", WAITING)
        self.check_live(b"[0] one\n", "--tag-output", PROBE, "print")

    def test_into_a_file_too(self):
        with open(self.file, "wb") as file:
            job = start("-n", "1", PROBE, "print", self.gate, stdout=file)
        end = time.monotonic() + SECONDS
        while os.path.getsize(self.file) < len(b"one\n"):
            self.assertIsNone(job.poll(), "the job ended early")
            self.assertLess(time.monotonic(), end, "the line did not come into the file")
            time.sleep(0.01)
        self.open_gate()
        self.assertEqual(job.wait(SECONDS), 0)
        job.communicate()

    def test_buffered_leaves_the_processes_our_own_output(self):
        asks = "import os; print(os.isatty(1), os.environ.get('TERM'))"
        environment = {**os.environ, "TERM": "xterm"}
        for label in ([], ["--label"]):
            for words, expected in (([], "True dumb"), (["--output", "live"], "True dumb"),
                                    (["--output=buffered"], "False xterm")):
                with self.subTest(label=label, words=words):
                    code, out, _ = run("-n", "1", *words, *label, PYTHON, "-c", asks, env=environment)
                    self.assertEqual(code, 0)
                    self.assertEqual(out.split("] ")[-1].strip(), expected)

    def test_a_null_device_needs_no_terminal(self):
        with open(os.devnull, "wb") as nothing:
            asks = "import os, sys; sys.exit(os.isatty(1))"
            code, _, errors = run("-n", "1", PYTHON, "-c", asks, stdout=nothing)
        self.assertEqual(code, 0, errors)


    def test_without_pseudo_terminals_lines_still_come(self):
        hide = mounting('mount --bind /dev/null /dev/ptmx && exec "$@"')
        for label, expected in (([], "one\n"), (["--label"], "[0] one\n")):
            job = subprocess.run([*hide, OSHRUN, "-n", "1", *label, PROBE, "print", os.devnull],
                                 capture_output=True, check=False, timeout=SECONDS, text=True)
            self.assertEqual((job.returncode, job.stdout, job.stderr), (0, expected, ""))


class CompletenessTest(unittest.TestCase):
    def test_bytes_pass_unchanged(self):
        script = "import os\nfor i in range(64): os.write(1, bytes(range(256)) * 64 + bytes([i]) * 100)"
        job = start("-n", "1", PYTHON, "-c", script)
        out, _ = job.communicate(timeout=SECONDS)
        expected = b"".join(bytes(range(256)) * 64 + bytes([i]) * 100 for i in range(64))
        self.assertEqual(job.returncode, 0)
        self.assertEqual(len(out), len(expected))
        self.assertEqual(hashlib.sha256(out).digest(), hashlib.sha256(expected).digest())

    def test_lines_of_many_processes_stay_whole(self):
        script = """
import os
rank = os.environ["RANK"]
for i in range(3000):
    os.write(1, f"{rank} {i} {'x' * (i % 90)}.\\n".encode())
"""
        _, out, _ = run("-n", "4", PYTHON, "-c", script)
        expected = sorted(f"{rank} {i} {'x' * (i % 90)}." for rank in range(4) for i in range(3000))
        self.assertEqual(sorted(out.splitlines()), expected)

    def test_nothing_is_lost_at_control_c(self):
        for label in ([], ["--label"]):
            with self.subTest(label=label):
                job = start("-n", "2", *label, PYTHON, "-E", "-c", TALKATIVE)
                # More than a pipe and a terminal hold is printed, and nobody has read any of it.
                read_until(job.stderr, b"done", 2)
                job.send_signal(signal.SIGINT)
                out, _ = job.communicate(timeout=SECONDS)
                self.assertIn(job.returncode, (1, 130))  # Python's own end, or the signal's
                lines = out.decode().splitlines()
                self.assertGreater(len(out), 160 << 10)
                for i in range(1800):
                    printed = [line for line in lines if f"line {i} of" in line]
                    self.assertEqual(len(printed), 2, printed)

    def test_a_full_disk_is_named(self):
        small = mounting('mount -t tmpfs -o size=64k none /mnt && exec "$@" >/mnt/output')
        job = subprocess.run([*small, OSHRUN, "-n", "2", "yes"], capture_output=True, timeout=SECONDS,
                             check=False, text=True)
        self.assertEqual(job.returncode, 141, job.stderr)
        self.assertIn("oshrun: the job's output cannot be written: No space left", job.stderr)

    def test_the_last_words_of_a_process_come_before_the_line_about_it(self):
        with tempfile.TemporaryFile() as file:
            script = "import os; os.write(1, b'last words\\n'); os.kill(os.getpid(), 9)"
            job = start("-n", "1", PYTHON, "-c", script, stdout=file)
            read_until(job.stderr, b"was killed by signal 9")
            self.assertEqual(os.pread(file.fileno(), 100, 0), b"last words\n")
            self.assertEqual(job.wait(SECONDS), 137)
            job.communicate()


class ReaderTest(unittest.TestCase):
    """Somebody who does not read must not keep the launcher from its work."""

    def start_flood(self, *options):
        # Each is known to be writing: the pipe to us is full.
        job = start("-n", "2", *options, "yes", "a line that nobody reads")
        end = time.monotonic() + SECONDS
        while select.select([job.stdout], [], [], 0.01) == ([], [], []) and time.monotonic() < end:
            pass
        return job

    def test_a_time_out_holds(self):
        for label in ([], ["--label"]):
            with self.subTest(label=label):
                job = self.start_flood("--timeout", "0.5", *label)
                self.assertEqual(job.wait(SECONDS), 124)
                self.assertIn(b"bytes that the job printed are lost", job.stderr.read())
                job.communicate()

    def test_signals_are_passed_on(self):
        for label in ([], ["--label"]):
            with self.subTest(label=label):
                job = self.start_flood(*label)
                job.send_signal(signal.SIGTERM)
                # Now it waits for the reader alone; a second one ends that.
                read_until(job.stderr, b"ended by signal 15")
                job.send_signal(signal.SIGTERM)
                self.assertEqual(job.wait(SECONDS), 143)
                job.communicate()

    def test_a_late_reader_gets_everything(self):
        job = start("-n", "1", PYTHON, "-c", "for i in range(20000): print('x' * 99)")
        first = read_until(job.stdout, b"\n")
        out, _ = job.communicate(timeout=SECONDS)
        self.assertEqual(job.returncode, 0)
        self.assertEqual((first + out).count(b"x" * 99 + b"\n"), 20000)
