# SPDX-License-Identifier: Apache-2.0
"""The record of measurements, the pages and pictures that are made from it, and what is read of programs; measures nothing."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as tree
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent / "hosts")]

import pages
import programs
import rates
import record
from record import Row

EPYC = {"family": "amd-epyc", "processor": "AMD EPYC 9R14", "cores": 2, "caches": ["L1d 32 KiB"], "kernel": "Linux 6", "page_size": 4096, "huge_pages": {}}
XEON = EPYC | {"family": "intel-xeon", "processor": "Intel(R) Xeon(R) Processor"}


def a_record(machine, rows, rival="Rival", identity="oshmem"):
    return {"machine": machine, "tables": {identity: record.table("a rival", "run it", rival, {"memspan": "1", "OSHMEM": "2"}, rows)}}


def sizes(*ratios, **more):
    return [Row("put", "us", size, 2, 1.0, 1 / ratio, ratio, target=1.0, **more) for size, ratio in zip(("64 KiB", "8 B", "1 MiB"), ratios)]


class RowTest(unittest.TestCase):
    def test_the_ratio_is_the_median_of_the_rounds_ratios(self):
        row = record.of_rounds("get", "us", [1, 40, 3, None], [2, 80, 6, 1])
        self.assertEqual((row.ratio, row.lower, row.upper, row.rounds), (0.5, 0.5, 0.5, 4))

    def test_the_ratio_of_a_bandwidth_is_time_over_time(self):
        self.assertEqual(record.of_rounds("put", "MB/s", [200], [100]).ratio, 0.5)

    def test_verdicts(self):
        def of(**keys):
            return Row("get", **keys).verdict()

        self.assertEqual(of(ratio=0.9, target=1), "met")
        self.assertEqual(of(ratio=1.1, lower=0.9, target=1), "level")
        self.assertEqual(of(ratio=1.1, lower=1.01, target=1), "missed")
        self.assertEqual(of(ours=4.0, ratio=0.5, target=3, of="ours"), "missed")
        self.assertIsNone(of(ratio=1.1))
        self.assertIsNone(of(failure="ended by SIGSEGV", target=1))

    def test_a_rival_without_figures_leaves_no_ratio(self):
        row = record.of_rounds("get", "us", [1, 2], [None, None])
        self.assertEqual((row.ours, row.rival, row.ratio), (1.5, None, None))


class RecordTest(unittest.TestCase):
    def test_a_run_replaces_its_rows_and_leaves_the_others(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "records/a.json")
            for rows in ([Row("get", ours=1.0, date="2026-01-01"), Row("put", ours=2.0, date="2026-01-01")], [Row("put", ours=3.0), Row("new", ours=4.0)]):
                record.add(path, "x", record.table("t", "c", None, {}, rows))
            found = {row.name: row for row in record.rows_of(json.loads(path.read_text())["tables"]["x"])}
            self.assertEqual({name: row.ours for name, row in found.items()}, {"get": 1.0, "put": 3.0, "new": 4.0})
            self.assertEqual(found["get"].date, "2026-01-01")
            self.assertNotEqual(found["put"].date, "2026-01-01")
            self.assertEqual(os.listdir(path.parent), ["a.json"])

    def test_rows_of_other_sizes_and_processes_are_others(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a.json")
            for size, processes in (("8 B", 2), ("8 B", 4), ("64 B", 2), ("8 B", 2)):
                record.add(path, "x", record.table("t", "c", None, {}, [Row("put", size=size, processes=processes, ours=1.0)]))
            self.assertEqual(len(json.loads(path.read_text())["tables"]["x"]["rows"]), 3)

    def test_other_work_is_named(self):
        self.assertEqual(record.table("t", "c", None, {}, [], busy=0.2)["remarks"], [])
        self.assertIn("1.6 cores", record.table("t", "c", None, {}, [], busy=1.6)["remarks"][0])

    def test_families(self):
        for processor, family in (("AMD EPYC 9R14 96-Core Processor", "amd-epyc"), ("Intel(R) Xeon(R) Processor", "intel-xeon"),
                                  ("Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", "intel-xeon"), ("aarch64", "aarch64"), ("", "unknown")):
            self.assertEqual(record.family(processor), family)

    def test_the_machine_is_described(self):
        self.assertEqual(set(record.machine()), set(EPYC))


class TableTest(unittest.TestCase):
    def text(self, *records):
        return pages.Table("oshmem", dict(zip("ab", records))).text(pages.INDEX)

    def lines(self, *records):
        return [line for line in self.text(*records).split("\n") if line.startswith("|")]

    def test_one_machine_has_both_sides_and_the_ratio(self):
        row = Row("get", "us", "8 B", 2, 0.003, 0.012, 0.25, 0.2, 0.3, 0.35, rounds=7, date="2026-01-02")
        text = self.text(a_record(EPYC, [row]))
        self.assertIn("| get, 8 B | 3 ns | 12 ns | 0.25 (0.20–0.30) | 0.35 |", text)
        self.assertIn("AMD EPYC, 2026-01-02; memspan 1, OSHMEM 2; 7 rounds. 1 of 1 targets are met. `run it`", text)

    def test_two_machines_are_side_by_side(self):
        lines = self.lines(*(a_record(machine, [Row("get", "us", None, 2, 0.003, 0.012, ratio, target=1.0)]) for machine, ratio in ((EPYC, 0.25), (XEON, 1.5))))
        self.assertEqual(lines, ["| operation | AMD EPYC | Intel Xeon |", "|---|---:|---:|", "| get | 0.25 (3 ns) | **1.50** (3 ns) |"])

    def test_a_figure_without_a_rival_is_side_by_side_also(self):
        lines = self.lines(*(a_record(machine, [Row("fence", "", ours=ours, target=6, of="ours")], None) for machine, ours in ((EPYC, 3.0), (XEON, 9.0))))
        self.assertEqual(lines[2:], ["| fence | 3 | **9** |"])

    def test_a_row_of_one_machine_has_no_figure_of_the_other(self):
        lines = self.lines(a_record(EPYC, [Row("get", ours=1.0, rival=2.0, ratio=0.5)]), a_record(XEON, [Row("put", ours=1.0, rival=2.0, ratio=0.5)]))
        self.assertEqual(lines[2:], ["| get | 0.50 (1 µs) | - |", "| put | - | 0.50 (1 µs) |"])

    def test_an_operation_of_many_sizes_has_one_line(self):
        lines = self.lines(a_record(EPYC, sizes(0.5, 0.2, 1.2)))
        self.assertEqual(lines[2:], ["| put | 0.50 | 0.20, 8 B | **1.20**, 1 MiB | 2/3 |"])

    def test_an_operation_of_many_numbers_of_processes_has_one_line(self):
        rows = [Row("barrier", processes=n, ours=1.0, rival=2.0, ratio=ratio) for n, ratio in ((2, 0.5), (16, 0.7), (8, 0.6))]
        self.assertEqual(self.lines(a_record(EPYC, rows))[2:], ["| barrier | 0.60 | 0.50, 2 processes | 0.70, 16 processes |"])

    def test_a_failure_is_named(self):
        self.assertIn("| get | 1 µs | Fast: ended by SIGSEGV | - |", self.text(a_record(EPYC, [Row("get", ours=1.0, against="Fast", failure="ended by SIGSEGV")])))

    def test_no_table_has_more_than_five_columns(self):
        rows = [*sizes(0.5, 0.2, 1.2), Row("get", ours=1.0, rival=2.0, ratio=0.5, target=1.0)]
        for records in ([a_record(EPYC, rows)], [a_record(EPYC, rows), a_record(XEON, rows)]):
            for line in self.lines(*records):
                self.assertLessEqual(line.count("|"), 6)


class PictureTest(unittest.TestCase):
    def picture(self, *rows):
        return pages.Table("oshmem", {"a": a_record(EPYC, list(rows))}).picture()

    def test_sizes_are_cells_in_their_order_and_misses_are_framed(self):
        svg = self.picture(*sizes(0.5, 0.2, 1.2))
        words = [element.text for element in tree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertEqual([word for word in words if word in ("8 B", "64 KiB", "1 MiB")], ["8 B", "64 KiB", "1 MiB"])
        self.assertEqual(svg.count('class="missed"'), 1)

    def test_a_row_that_memspan_loses_has_a_bar(self):
        svg = self.picture(*(Row(f"row {ratio}", ours=1.0, rival=2.0, ratio=ratio) for ratio in (0.001, 0.5, 2.0)))
        self.assertEqual((svg.count('class="slower"'), svg.count('class="faster"')), (1, 2))
        self.assertIn("1,000×", svg)
        tree.fromstring(svg)

    def test_two_ratios_are_no_picture(self):
        self.assertIsNone(self.picture(Row("get", ratio=0.5), Row("put", ratio=0.5)))

    def test_sizes_have_an_order(self):
        found = ["100,000 × 256 B", "1 MiB", "16 processes", "32 × 2 MiB", "8 B", "cache block", "4 processes", "1 × 4 KiB"]
        self.assertEqual(sorted(found, key=pages.order_of_size), ["cache block", "8 B", "1 × 4 KiB", "1 MiB", "32 × 2 MiB", "100,000 × 256 B", "4 processes", "16 processes"])


class PagesTest(unittest.TestCase):
    def test_misses_have_every_row_beyond_its_target(self):
        rows = [*sizes(0.5, 1.3, 1.2, lower=0.9), Row("get", ours=4.0, target=3.0, of="ours")]
        lines = pages.misses("", {"a": a_record(EPYC, rows)}, pages.INDEX).split("\n")
        self.assertEqual(lines[4:], ["| put | Rival | 8 B: *1.30*; 1 MiB: *1.20* | 1.00 |", "| get | Rival | 4 µs | 3 µs |"])

    def test_the_summary_counts_the_rows_in_which_memspan_is_faster(self):
        text = pages.summary("", {"a": a_record(EPYC, sizes(0.5, 0.2, 1.2))}, pages.INDEX)
        self.assertTrue(text.endswith(" | 0.50 (2/3) |"), text)

    def test_the_summary_has_a_range_if_no_row_is_near_the_median(self):
        records = {"a": a_record(EPYC, sizes(0.02, 0.7)), "b": a_record(XEON, sizes(0.2, 0.7))}
        self.assertTrue(pages.summary("", records, pages.INDEX).endswith(" | 0.02 to 0.70 (2/2) | 0.45 (2/2) |"))
        picture = pages.picture_of_summary(records)
        self.assertNotIn("AMD EPYC", picture)
        self.assertIn("Intel Xeon", picture)

    def test_only_what_is_between_marks_is_written(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "a.md")
            page.write_text("before\n<!-- measured: machines -->\nold\n<!-- measured:end -->\nafter\n")
            text = pages.written(page, {"amd-epyc": a_record(EPYC, [])})
            self.assertTrue(text.startswith("before\n<!-- measured: machines -->\n| machine |"))
            self.assertTrue(text.endswith("\n<!-- measured:end -->\nafter\n"))

    def test_a_table_that_no_record_has_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "no record has a table gone"):
            pages.table("gone", {}, pages.INDEX)

    def test_a_table_that_no_page_has_is_found(self):
        self.assertEqual(pages.missing({"a": a_record(EPYC, [Row("get")], identity="unknown")}), ["unknown"])

    def test_check_names_a_page_that_is_not_current_and_writes_nothing(self):
        said = io.StringIO()
        with unittest.mock.patch.object(pages, "changes", lambda _: {pages.INDEX: "other"}), contextlib.redirect_stderr(said):
            self.assertEqual(pages.main(["--check"]), 1)
        self.assertIn("docs/performance.md", said.getvalue())
        self.assertNotEqual(pages.INDEX.read_text(encoding="utf-8"), "other")


class ProgramsTest(unittest.TestCase):
    def test_links(self):
        printed = "         link       bare        ratio   (9 rounds, Unix)\nput of 1 MiB           5.64       2.82 GB/s    2.00\nget of 8 bytes         5.40      60.00 us      0.09\n"
        put, get = programs.links(printed)
        self.assertEqual((put.name, put.ours, put.rival, put.ratio, put.rounds, put.verdict()), ("put of 1 MiB", 5640, 2820, 0.5, 9, "met"))
        self.assertEqual((get.name, get.size, get.ratio, get.target), ("get of 8 bytes", "idle, Unix", 0.09, 2.5))

    def test_the_barrier(self):
        (row,) = programs.barrier("bare socket, one way 33.00 us, barrier of 2 hosts 7.70 us, ratio 0.24\n")
        self.assertEqual((row.ours, row.rival, row.ratio), (7.7, 33.0, 0.24))
        self.assertEqual(programs.barrier("oshrun: the job was ended"), [])

    def test_kernels_are_those_that_the_program_prints(self):
        source = (record.ROOT / "benchmarks/device/main.cc").read_text(encoding="utf-8")
        for name in programs.KERNELS:
            self.assertIn(f'row("{name}"', source)
        (row,) = programs.kernels("| launch + synchronize, 1 block, us | 0.31 | 5 |\n| unknown | 1 | |\n")
        self.assertEqual((row.name, row.ours, row.verdict()), ("launch + synchronize, 1 block", 0.31, "met"))

    def test_narrow_types_are_next_to_the_widest_float32(self):
        printed = "".join(f" 4096 KiB  2 sources  {kind:<13}  {way:<8}  {rate:7.2f} GB/s   1.00 of float32\n" for kind, way, rate in (
            ("float32", "AVX-512", 20), ("float32", "AVX2", 10), ("bfloat16", "with BF16", 40), ("bfloat16", "baseline", 1), ("int8", "AVX2", 1)))
        (row,) = programs.reductions(printed)
        self.assertEqual((row.name, row.size, row.ratio), ("bfloat16, AVX-512 BF16", "4 MiB, 2 sources", 0.5))

    def test_names_of_rates(self):
        self.assertEqual(rates.name_and_size("put", 65536, "GB/s"), ("put", "64 KiB"))
        self.assertEqual(rates.name_and_size("put+quiet", 8, "us"), ("put + quiet of 8 bytes", None))
        self.assertEqual(rates.name_and_size("allreduce", 1 << 20, "us"), ("all-reduce of 1 MiB", None))
        self.assertEqual(rates.name_and_size("barrier", 0, "us"), ("barrier", None))


class AllTest(unittest.TestCase):
    """all.sh with a build whose only program fails after its first figure."""

    def run_all(self, folder, *words):
        for name, text in (("lib/libshmem.so", ""), ("bin/memfabric_bench", "#!/bin/sh\necho trans_register 1073741824 1 us 1 1 1\nexit 1\n")):
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o700)
        command = ["bash", record.ROOT / "benchmarks/all.sh", "--build", folder, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_a_failed_step_is_named_and_neither_records_nor_pages_change(self):
        files = [*record.FOLDER.glob("*"), *pages.pages()]
        before = {path: path.read_bytes() for path in files}
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_all(folder, "--only", "memfabric")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn("all: failed: memfabric. The record and the pages are as before.", done.stderr)
            kept = json.loads(Path(folder, "measured", record.default_path().name).read_text())
            self.assertIn(("register, 1024 MiB", 1), [(row["name"], row["ours"]) for row in kept["tables"]["memfabric-limits"]["rows"]])
        self.assertEqual({path: path.read_bytes() for path in [*record.FOLDER.glob("*"), *pages.pages()]}, before)

    def test_what_is_missing_is_left_out_and_named(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_all(folder, "--only", "mpi,gloo")
            self.assertIn("left out: mpi: no MPI is installed (--install)", done.stderr)
            self.assertIn("left out: gloo: the rivals have no wheel of memspan (--install)", done.stderr)
            self.assertEqual(done.returncode, 2)

    def test_a_wrong_option_and_a_missing_build_are_refused(self):
        for words, said in ((["--fast"], 'unknown option "--fast"'), (["--build", "/nonexistent"], "/nonexistent has no lib/libshmem.so")):
            done = subprocess.run(["bash", record.ROOT / "benchmarks/all.sh", *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, said in done.stderr), (2, True), done.stderr)


if __name__ == "__main__":
    unittest.main()
