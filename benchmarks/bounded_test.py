# SPDX-License-Identifier: Apache-2.0
"""That a row which does not end is told and the others are measured, and that rows take a bounded time; needs no rival."""

import subprocess
import sys
import time
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE / "python")]

import alternating
import bounded
import transfer_sides

SCRIPT = """
begin() { echo "begin $1 $2"; }
case $1 in
  all) begin a 1; echo row a both; begin b 2; exec sleep 60 ;;
  alone) begin b 2; echo row b alone; echo end ;;
  after) begin c 3; echo row c both; echo end; exit $2 ;;
esac
"""


def shell_job(code=0, after_row="after"):
    """Three rows, of which the second does not end with both sides."""

    def start(after, alone):
        step = "alone" if alone else after_row if after else "all"
        command = ["sh", "-c", SCRIPT, "sh", step, str(code)]
        return [subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)]

    return start


class BoundedTest(unittest.TestCase):
    def test_a_row_that_does_not_end_is_measured_alone_and_the_others_are_measured(self):
        begin = time.monotonic()
        measured = bounded.measure(shell_job(), 0.5)
        self.assertLess(time.monotonic() - begin, 20)
        self.assertEqual(measured.lines, ["row a both", "row b alone", "row c both"])
        self.assertEqual(measured.failed, {("b", 2): bounded.Failed("no end within 0.5 s", None)})
        self.assertEqual(measured.errors, [])

    def test_a_failure_after_the_last_row_is_an_error_and_no_rows(self):
        self.assertEqual(bounded.measure(shell_job(3), 0.5).errors, ["exit code 3"])

    def test_a_job_whose_rows_fail_again_and_again_is_given_up(self):
        measured = bounded.measure(shell_job(after_row="all"), 0.2)
        self.assertIn("not tried", measured.errors[0])

    def test_a_process_that_dies_beside_the_first_ends_the_row(self):
        quiet = {"start_new_session": True}
        first = subprocess.Popen(["sh", "-c", "echo begin a 1; exec sleep 60"], stdout=subprocess.PIPE, **quiet)
        done = bounded.follow([first, subprocess.Popen(["sh", "-c", "kill -SEGV $$"], **quiet)], 30)
        self.assertEqual((done.row, done.failure), (("a", 1), "ended by SIGSEGV"))


class TimesTest(unittest.TestCase):
    def test_a_call_that_takes_long_has_fewer_rounds_and_is_not_repeated_in_them(self):
        calls = []

        def long_call():
            calls.append("long")
            time.sleep(alternating.LONG_S)

        sides = {"long": long_call, "short": lambda: calls.append("short")}
        pace = alternating.Pace(least_s=1e-3, rounds=50, budget_s=3.5 * alternating.LONG_S)
        times = alternating.times_of(sides, pace)
        self.assertEqual([len(values) for values in times.values()], [3, 3])
        self.assertEqual(calls.count("long"), 4)  # one tells how long it takes
        self.assertGreater(calls.count("short"), 3)

    def test_sides_take_turns_and_who_goes_first_changes(self):
        order = []
        sides = {name: lambda name=name: order.append(name) for name in "ab"}
        pace = alternating.Pace(least_s=0, rounds=2, budget_s=1)
        alternating.times_of(sides, pace, meet=lambda: order.append("|"))
        self.assertEqual("".join(order[8:]), "a|ab|bb|ba|a")  # four calls of each tell how long they take

    def test_all_use_the_times_of_rank_0(self):
        asked = []
        alternating.times_of({"a": lambda: None}, alternating.Pace(1, 1, 1), agree=lambda value: asked.append(value) or 1.0)
        self.assertEqual(len(asked), 2)


class SidesTest(unittest.TestCase):
    def test_a_digest_tells_the_pieces_and_their_order(self):
        memory = transfer_sides.Memory(64, 0)
        memory.randomize([0, 32], [16, 16])
        other = transfer_sides.Memory(64, 0)
        other.bytes[8:24], other.bytes[40:56] = memory.bytes[:16], memory.bytes[32:48]
        self.assertEqual(memory.digest([0, 32], [16, 16]), other.digest([8, 40], [16, 16]))
        self.assertNotEqual(memory.digest([0, 32], [16, 16]), memory.digest([32, 0], [16, 16]))

    def test_mooncake_gets_no_more_pieces_a_call_than_it_takes(self):
        class Engine:
            calls = []

            def batch_transfer_sync_write(self, name, mine, theirs, sizes):
                self.calls.append((mine, theirs, sizes))
                return 0

            batch_transfer_sync_read = batch_transfer_sync_write

        side = object.__new__(transfer_sides.MooncakeSide)
        side.engine = Engine()
        work = transfer_sides.Work.scattered([1] * 2500)
        memory = transfer_sides.Memory(64, 0)
        side.connect(memory, {"name": "peer", "address": 0}, work)("write")
        self.assertEqual([len(sizes) for _, _, sizes in Engine.calls], [1000, 1000, 500])
        self.assertEqual([at for _, theirs, _ in Engine.calls for at in theirs], work.theirs)


if __name__ == "__main__":
    unittest.main()
