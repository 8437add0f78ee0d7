# SPDX-License-Identifier: Apache-2.0
"""Lines with --label, and input."""

import subprocess
import unittest

from jobs.launcher import OSHRUN, PYTHON, SECONDS, run, run_shells, start, strangers

LINES = 20000


def line(number):
    return f"{number} {'abcdef' * (number % 37)}."


class LabelTest(unittest.TestCase):
    def test_each_line_bears_its_rank(self):
        script = "echo out $RANK; echo err $RANK >&2"
        code, out, errors = run_shells(3, script, "--label")
        self.assertEqual(code, 0)
        for got, word in ((out, "out"), (errors, "err")):
            self.assertEqual(sorted(got.splitlines()), [f"[{rank}] {word} {rank}" for rank in range(3)])

    def test_the_last_line_needs_no_end(self):
        code, out, _ = run_shells(2, 'printf "no end"; test $RANK = 0 || exit 2', "--label")
        self.assertEqual(code, 2)
        self.assertEqual(sorted(out.splitlines()), ["[0] no end", "[1] no end"])

    def test_many_lines_come_whole_in_order_and_once(self):
        # Of all lengths, from all processes at once.
        script = f"for i in range({LINES}): print(f\"{{i}} {{'abcdef' * (i % 37)}}.\")"
        code, out, _ = run("-n", "4", "--label", PYTHON, "-c", script, env=strangers())
        self.assertEqual(code, 0)
        lines = out.splitlines()
        expected = [line(number) for number in range(LINES)]
        self.assertEqual(len(lines), 4 * LINES)
        for rank in range(4):
            label = f"[{rank}] "
            self.assertTrue([it[len(label) :] for it in lines if it.startswith(label)] == expected, rank)

    def test_a_reader_that_goes_ends_the_job(self):
        job = start("-n", "2", "--label", "yes", env=strangers())
        for _ in range(5):
            self.assertRegex(job.stdout.readline(), rb"^\[[01]\] y\n$")
        job.stdout.close()
        self.assertEqual(job.wait(SECONDS), 141)  # 128 + SIGPIPE
        job.stderr.close()


class InputTest(unittest.TestCase):
    def test_rank_0_reads_it(self):
        job = subprocess.run([OSHRUN, "-n", "3", "--label", "cat"], input="one\ntwo\n", env=strangers(),
                             capture_output=True, text=True, timeout=SECONDS)
        self.assertEqual((job.returncode, job.stdout), (0, "[0] one\n[0] two\n"))
