# SPDX-License-Identifier: Apache-2.0
"""The arithmetic and the documents of the comparison; needs neither of the two libraries."""

import contextlib
import io
import signal
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import compare
import jobs
import report
import rows

ROW = rows.Row("pair", "put_bw", "put bandwidth", 8, target=1.0, bare_target=1.25)


def result(triples: list[tuple], unit: str = "us", **failures: list[str]) -> rows.Result:
    samples = [rows.Sample(*triple) for triple in triples]
    return rows.Result(ROW, unit, samples, 2, dict(failures))


class RowsTest(unittest.TestCase):
    def test_parses_figures_and_leaves_remarks(self):
        figures = rows.parse("# a remark\nput_bw  8  1.5 MB/s 1 2 3\nnonsense\nx 0 y us 1 2 3\n")
        self.assertEqual(figures, {("put_bw", 8): (1.5, "MB/s")})

    def test_ratio_of_a_bandwidth_is_time_over_time(self):
        self.assertEqual(result([(200, 100, 400)], "MB/s").ratio("rival"), 0.5)
        self.assertEqual(result([(200, 100, 400)], "us").ratio("rival"), 2.0)

    def test_ratio_is_the_median_of_the_rounds_not_the_ratio_of_medians(self):
        slow_second_round = result([(1, 2, 1), (40, 80, 40), (3, 6, 3)])
        self.assertEqual(slow_second_round.ratio("rival"), 0.5)

    def test_verdicts(self):
        def of(*ratios: float) -> str:
            return result([(ratio, 1, 1) for ratio in ratios]).verdict()

        self.assertEqual(of(0.9, 1.0, 1.1), "met")
        self.assertEqual(of(0.9, 1.05, 1.1), "level")
        self.assertEqual(of(1.1, 1.2, 1.3), "missed")
        self.assertEqual(result([(None, 1, 1)]).verdict(), "memspan failed")
        self.assertEqual(result([(1, None, 1)]).verdict(), "no rival")

    def test_a_failed_round_leaves_the_others(self):
        some = result([(1, 2, 1), (1, None, 1), (1, 2, 1)], OSHMEM=["ended by SIGSEGV"])
        self.assertEqual(some.ratio("rival"), 0.5)
        self.assertIn("ended by SIGSEGV, 1 of 3 rounds", report.cells(some, "memspan", "OSHMEM")[4])

    def test_the_bare_bound_is_judged_apart(self):
        self.assertEqual(result([(1.2, 1, 1)]).bare_verdict(), "met")
        self.assertEqual(result([(1.3, 1, 1)]).bare_verdict(), "missed")

    def test_every_row_belongs_to_a_job(self):
        names = {job.name for job in rows.jobs(quick=True)}
        self.assertLessEqual({row.job for row in rows.rows(2)}, names)


class ReportTest(unittest.TestCase):
    def test_values_read_well(self):
        texts = [report.value_text(*v) for v in ((0.012, "us"), (1500, "us"), (12345, "MB/s"))]
        self.assertEqual(texts, ["12 ns", "1.5 ms", "12.3 GB/s"])

    def test_a_row_of_the_record_names_a_crash(self):
        row = report.row_of(result([(1, None, 1)], OSHMEM=["ended by SIGSEGV"]))
        self.assertEqual((row.ours, row.ratio, row.failure, row.verdict()), (1, None, "ended by SIGSEGV", None))

    def test_a_row_of_the_record_has_the_ratio_of_its_side(self):
        one = result([(200, 100, 400)], "MB/s")
        self.assertEqual([report.row_of(one, side=side).ratio for side in ("rival", "bare")], [0.5, 2.0])
        self.assertEqual(report.row_of(one, side="bare").target, 1.25)


class JobsTest(unittest.TestCase):
    def test_a_child_that_hangs_is_ended_with_its_children(self):
        start = time.monotonic()
        done = jobs.run(["/bin/sh", "-c", "sleep 60 & sleep 60; wait"], {}, 0.2)
        self.assertIn("no end within", done.failure)
        self.assertLess(time.monotonic() - start, 10)

    def test_a_crash_is_described(self):
        done = jobs.run(["/bin/sh", "-c", "echo said; kill -SEGV $$"], {}, 10)
        self.assertEqual((done.output, done.failure), ("said\n", "ended by SIGSEGV"))
        self.assertEqual(jobs.describe(-signal.SIGKILL), "ended by SIGKILL")

    def test_the_reason_of_a_failure_is_the_programs_own(self):
        outcome = jobs.Outcome("x\n# ERROR put_bw size 8: wrong byte at 0\n", 1.0, "exit code 1")
        self.assertEqual(
            compare.explain(outcome), "exit code 1 (ERROR put_bw size 8: wrong byte at 0)"
        )

    def test_a_missing_build_is_one_line_and_exit_code_2(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(compare.main(["--build", "/nonexistent", "--quick"]), 2)
        self.assertEqual(said.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
