# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of the comparison with MPIs, and how an MPI is found; needs none."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import groups
import mpi

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

    def test_a_side_alone_is_no_comparison(self):
        alone = groups.result("put", 8, 2, {"memspan": [1.0, 2.0, 3.0]}, {})
        self.assertEqual((alone.median_of("ours"), alone.verdict()), (2.0, "no rival"))


class FastestTest(unittest.TestCase):
    def of(self, **sides):
        """The results of a row: `name=(times of memspan, times of the MPI)`."""
        return {name: groups.result("put", 8, 2, {"memspan": ours, "mpi": rival}, {}) for name, (ours, rival) in sides.items()}

    def test_it_is_the_mpi_with_the_greatest_ratio_in_its_own_rounds(self):
        # With "lucky" the machine was twice as fast for both sides.
        results = self.of(slow=([4.0] * 3, [9.0] * 3), fast=([4.0, 8.0, 4.0], [5.0, 10.0, 1.0]), lucky=([2.0] * 3, [4.0] * 3))
        self.assertEqual(groups.fastest(results), "fast")
        self.assertEqual(groups.lines_of({("put", 8): results})[1][2:], ["4 µs", "fast: 5 µs", "0.800 (0.800 - 2.400), met"])

    def test_an_mpi_that_does_not_end_is_not_the_fastest_of_several(self):
        failed = groups.result("put", 8, 2, {"memspan": [1.0, 2.0, 3.0]}, {"failing": ["no end within 60 s"] * 3})
        self.assertEqual(groups.fastest({"failing": failed} | self.of(slow=([1.0], [9.0]))), "slow")
        self.assertEqual(groups.lines_of({("put", 8): {"failing": failed}})[1][3:], ["failing: no end within 60 s", "rival failed"])

    def test_without_memspan_the_shortest_time_decides(self):
        times = {"slow": 3.0, "fast": 1.0, "medium": 2.0}
        self.assertEqual(groups.fastest({name: groups.result("put", 8, 2, {"mpi": [time]}, {}) for name, time in times.items()}), "fast")

    def test_the_table_is_narrow_and_has_the_bare_ratio(self):
        results = {"an MPI": groups.result("allreduce", 16384, 2, groups.parse(PRINTED.splitlines())["allreduce", 16384], {})}
        lines = groups.lines_of({("allreduce", 16384): results})
        self.assertEqual(set(map(len, lines)), {5})
        self.assertEqual(lines[1][2], "4 µs (4.00 × bare)")

    def test_the_record_has_the_row_of_the_fastest(self):
        (row,) = groups.rows_of_record({(2, "put", 8): self.of(slow=([4.0], [8.0]), fast=([4.0], [5.0]))})
        self.assertEqual((row.name, row.size, row.against, row.ratio, row.rival), ("put", "8 B", "fast", 0.8, 5.0))


class MeasureTest(unittest.TestCase):
    def test_an_mpi_that_does_not_start_is_named_and_the_others_are_measured(self):
        started = []

        def measure(_, rival, *others):
            started.append((rival, others[-1]))
            if rival == "broken":
                return groups.bounded.Rows(["cannot load libmpi.so", "-----"], {}, ["exit code 1"])
            return groups.bounded.Rows([f"{others[-1]} 8 memspan us 1.0", f"{others[-1]} 8 mpi us 2.0"])

        with unittest.mock.patch.object(groups, "measure", measure):
            table, failures, of_rivals = groups.measure_all(chosen("--only", "put,get"), [("broken", ""), ("good", "")], 2)
        self.assertEqual((failures, of_rivals), (["broken, 2 processes: exit code 1: cannot load libmpi.so"], []))
        self.assertEqual(started, [("broken", "put"), ("good", "put"), ("good", "get")])
        self.assertEqual({cell: list(results) for cell, results in table.items()}, {("put", 8): ["good"], ("get", 8): ["good"]})

    def test_a_row_that_does_not_end_is_named_and_whose_fault_it_was(self):
        ended, not_ended = groups.bounded.Failed("no end within 60 s", None), groups.bounded.Failed("exit code 1", "exit code 1")
        failures, of_rival = groups.failures_of(groups.bounded.Rows([], {("put", 8): ended, ("get", 8): not_ended}, []))
        self.assertEqual(failures, ["get 8: exit code 1; memspan by itself: exit code 1"])
        self.assertEqual(of_rival, ["put 8: no end within 60 s; memspan by itself: completed"])


class OptionsTest(unittest.TestCase):
    def test_the_document_says_what_was_left_out(self):
        line = groups.command_line(chosen("--only", "put,get", "--sizes", "8", "--mpi", "mpicxx.openmpi"))
        self.assertTrue(line.endswith("--rounds 9 --mpi mpicxx.openmpi --only put,get --sizes 8"), line)

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

    def test_a_folder_is_the_mpi_that_its_mpiexec_names(self):
        for printed, name in (("mpiexec (Open MPI) 5.0.11", "Open MPI 5.0.11"), ("Intel(R) MPI Library, Version 2021.19.0 Build 1", "Intel MPI 2021.19.0"),
                              ("HYDRA build details:\n Version: 5.0.2", "MPICH 5.0.2")):
            with tempfile.TemporaryDirectory() as folder:
                for program in ("mpicxx", "mpiexec"):
                    path = Path(folder) / "bin" / program
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(f"#!/bin/sh\necho '{printed}'\n")
                    os.chmod(path, 0o700)
                self.assertEqual(str(mpi.find(folder)), name)

    def test_without_one_there_is_one_line_and_exit_code_2(self):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.assertEqual(groups.main(["--mpi", "/nonexistent"]), 2)
        self.assertEqual(said.getvalue().count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
