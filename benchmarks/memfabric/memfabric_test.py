# SPDX-License-Identifier: Apache-2.0
"""The arithmetic and the table of MemFabric's measurement; needs no library and no rival."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import memfabric
import rivals
import table
import workloads
from workloads import MANY, Result, Row, Sample, Target


def result(targets: tuple[Target, ...], *samples: Sample, **more) -> Result:
    row = Row("many", "bm_write_many", 256, targets, "write_many", MANY, **more)
    return Result(row, list(samples))


class RowsTest(unittest.TestCase):
    def test_parses_figures_and_leaves_remarks(self):
        said = "# remark\nbm_start 2 1.5 us 1 2 3\nchurn_memory 9 -4 KiB 0 0 1\nx 0 y us 1 2 3\n"
        self.assertEqual(workloads.parse(said), {("bm_start", 2): 1.5, ("churn_memory", 9): -4})

    def test_a_ratio_is_made_within_a_round(self):
        slow_second_round = result((), Sample(1, 2), Sample(40, 80), Sample(3, 6))
        self.assertEqual(slow_second_round.ratio("bare"), 0.5)

    def test_what_a_piece_costs_is_what_is_above_the_bare_time(self):
        one = result((Target("piece", 100),), Sample(30_000, 20_000))
        self.assertEqual(one.above_bare(), [100])
        self.assertEqual(one.verdict(one.row.targets[0]), "met")

    def test_verdicts(self):
        def of(*ratios: float) -> str:
            target = Target("bare", 1.0)
            return result((target,), *(Sample(r, 1) for r in ratios)).verdict(target)

        self.assertEqual(of(0.9, 1.0, 1.1), "met")
        self.assertEqual(of(0.9, 1.05, 1.1), "level")
        self.assertEqual(of(1.1, 1.2, 1.3), "missed")

    def test_a_rival_that_is_not_there_decides_nothing(self):
        target = Target("Mooncake", 0.1)
        self.assertEqual(result((target,), Sample(1, 1)).verdict(target), "not measured")
        self.assertFalse(result((target,), Sample(1, 1)).missed())
        there = result((target,), Sample(1, 1, {"Mooncake": 5}))
        self.assertEqual(there.verdict(target), "missed")

    def test_more_than_nothing_is_missed(self):
        target = Target("count", 0)
        self.assertEqual(result((target,), Sample(1)).verdict(target), "missed")
        self.assertEqual(result((target,), Sample(0)).verdict(target), "met")

    def test_no_two_rows_are_the_same(self):
        all_rows = workloads.rows()
        self.assertEqual(len({(row.figure, row.size) for row in all_rows}), len(all_rows))


class RivalsTest(unittest.TestCase):
    def test_a_rival_that_is_not_installed_is_a_reason(self):
        missing = rivals.Rivals(Path("/nonexistent/python"), 1)
        self.assertEqual(missing.mooncake(), {})
        self.assertIn("not installed", missing.failures["Mooncake"][0])


class TableTest(unittest.TestCase):
    def test_cells(self):
        sample = Sample(30_000, 20_000, {"Mooncake": 600_000})
        one = result((Target("piece", 100), Target("Mooncake", 0.1)), sample)
        found = dict(zip(table.HEADINGS, table.cells(one)))
        self.assertEqual(found["memspan / bare"], "1.500")
        self.assertEqual(found["Mooncake"], "600 ms (0.050)")
        self.assertEqual(found["result"], "100 ns, met; met")
        self.assertEqual(found["rate"], "0.853 GB/s")

    def test_rows_of_the_record(self):
        sample = Sample(30_000, 20_000, {"Mooncake": 600_000})
        row = Row("pool, write, 100,000", "bm_write_many", 256, (Target("piece", 100), Target("Mooncake", 0.1)), "write_many", MANY, is_short=True)
        found = table.record_tables([Result(row, [sample])])
        (bare,), (mooncake,), (piece,) = found["memfabric"], found["memfabric-mooncake"], found["memfabric-limits"]
        self.assertEqual((bare.name, bare.size, bare.ratio, bare.target), ("write, pool", "100,000 × 256 B", 1.5, None))
        self.assertEqual((mooncake.ratio, mooncake.verdict()), (0.05, "met"))
        self.assertEqual((piece.ours, piece.unit, piece.verdict()), (100, "ns", "met"))

    def test_a_row_that_is_not_of_the_short_list_is_left_out(self):
        self.assertEqual([rows for rows in table.record_tables([result((), Sample(1, 1))]).values() if rows], [])


class ProgramTest(unittest.TestCase):
    def test_a_missing_build_is_one_line_and_exit_code_2(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(memfabric.main(["--build", "/nonexistent"]), 2)
        self.assertEqual(said.getvalue().count("\n"), 1)

    def test_a_program_that_fails_is_a_remark_and_exit_code_1(self):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "bin/memfabric_bench"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\necho '# ERROR bm_write_block: 3 wrong bytes'\nexit 1\n")
            program.chmod(0o755)
            said = io.StringIO()
            arguments = ["--build", folder, "--quick", "--rounds", "1", "--no-rivals", "--groups", "bm"]
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(memfabric.main(arguments), 1)
            self.assertIn("3 wrong bytes", said.getvalue())


if __name__ == "__main__":
    unittest.main()
