# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the comparison with an MPI, and how an MPI is found; needs none."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import groups
import mpi
import report

PRINTED = """a remark
allreduce 16384 memspan us 2.0 4.0 9.0
allreduce 16384 mpi us 4.0 4.0 6.0
allreduce 16384 bare us 1.0 1.0 1.0
barrier 0 memspan us 1.0 1.0 1.0
barrier 0 mpi us 2.0 2.0 2.0
# ERROR broadcast 8: the results differ
"""


def chosen(*arguments):
    return groups.options(list(arguments))


class ParseTest(unittest.TestCase):
    def test_takes_figures_and_leaves_remarks(self):
        found = groups.parse(PRINTED.splitlines())
        self.assertEqual(set(found), {("allreduce", 16384), ("barrier", 0)})
        self.assertEqual(found["allreduce", 16384]["mpi"], [4.0, 4.0, 6.0])


class ResultTest(unittest.TestCase):
    def of(self, *cell):
        return groups.result(*cell, 2, groups.parse(PRINTED.splitlines())[cell], {})

    def test_a_ratio_is_the_median_of_the_rounds_ratios(self):
        self.assertEqual(self.of("allreduce", 16384).ratios("rival"), [0.5, 1.0, 1.5])
        self.assertEqual(self.of("allreduce", 16384).ratio("rival"), 1.0)
        self.assertEqual(self.of("allreduce", 16384).verdict(), "met")

    def test_what_has_no_bare_way_has_an_empty_cell(self):
        cells = dict(zip(report.HEADINGS, report.cells(self.of("barrier", 0), "memspan", "an MPI")))
        self.assertEqual((cells["bare"], cells["memspan / OSHMEM"]), ("-", "0.500"))

    def test_a_side_alone_is_no_comparison(self):
        alone = groups.result("put", 8, 2, {"memspan": [1.0, 2.0, 3.0]}, {})
        self.assertEqual((alone.median_of("ours"), alone.verdict()), (2.0, "no rival"))

    def test_a_rival_that_does_not_end_is_said_in_its_cell(self):
        failures = {"an MPI": ["no end within 60 s"] * 3}
        one = groups.result("put", 8, 2, {"memspan": [1.0, 2.0, 3.0]}, failures)
        cells = dict(zip(report.HEADINGS, report.cells(one, "memspan", "an MPI")))
        self.assertEqual((cells["OSHMEM"], cells["result"]), ("no end within 60 s", "rival failed"))


class OptionsTest(unittest.TestCase):
    def test_the_document_says_what_was_left_out(self):
        line = groups.command_line(chosen("--only", "put,get", "--sizes", "8", "--mpi", "mpicxx.openmpi"))
        self.assertTrue(line.endswith("--mpi mpicxx.openmpi --rounds 9 --only put,get --sizes 8"), line)

    def test_an_unknown_operation_is_refused(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), self.assertRaises(SystemExit):
            chosen("--only", "allreduce,dance")
        self.assertIn("unknown operations: dance", said.getvalue())


class MpiTest(unittest.TestCase):
    def test_a_folder_without_one_and_a_command_that_is_none_are_refused(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(mpi.Absent, "has no mpicxx"):
            mpi.find(folder)
        with self.assertRaisesRegex(mpi.Absent, "no-such-mpicxx has no mpicxx"):
            mpi.find("no-such-mpicxx")

    def test_without_one_there_is_one_line_and_exit_code_2(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(groups.main(["--mpi", "/nonexistent"]), 2)
        self.assertEqual(said.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
