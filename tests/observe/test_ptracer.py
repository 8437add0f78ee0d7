# SPDX-License-Identifier: Apache-2.0
"""MEMSPAN_PTRACER: a table of calls by name, with the columns of MemFabric's."""

import os
import subprocess
import tempfile
import unittest

from jobs.launcher import SECONDS, environment, read_lines, run, until
from jobs.ports import free_port
from watched import WATCHED

COLUMNS = "TIME NAME BEGIN GOOD_END BAD_END ON_FLY MIN(us) MAX(us) AVG(us) TOTAL(us)".split()


def last_rows(file):
    """What the file says last of each call."""
    with open(file, encoding="ascii") as table:
        lines = table.read().splitlines()
    assert lines[0].split() == COLUMNS, lines[0]
    rows = {}
    for line in lines[1:]:
        day, time, name, *numbers = line.split()
        assert (len(day), len(time), len(numbers)) == (10, 8, 8), line
        rows[name] = dict(zip(COLUMNS[2:], map(float, numbers), strict=True))
    return rows


class PtracerTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def check_times(self, row):
        self.assertLess(0, row["MIN(us)"])
        self.assertLessEqual(row["MIN(us)"], row["AVG(us)"])
        self.assertLessEqual(row["AVG(us)"], row["MAX(us)"])
        self.assertAlmostEqual(row["AVG(us)"], row["TOTAL(us)"] / row["GOOD_END"], delta=0.001)

    def test_a_process_that_goes_on(self):
        with subprocess.Popen([WATCHED, "blocks", f"tcp://127.0.0.1:{free_port()}"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE,
                              env=environment(MEMSPAN_PTRACER=self.folder)) as member:
            self.assertEqual(read_lines(member.stdout, 1), ["ready"])
            file = os.path.join(self.folder, f"ptracer_{member.pid}.dat")
            until(SECONDS, "the table has the last call", lambda: "memspan_group_all_reduce" in last_rows(file))
            rows = last_rows(file)
            self.assertEqual([rows["memspan_kv_get"][column] for column in COLUMNS[2:6]], [11, 10, 1, 0])
            self.assertEqual([rows["memspan_kv_put"][column] for column in COLUMNS[2:6]], [10, 10, 0, 0])
            self.assertEqual(rows["memspan_group_all_reduce"]["GOOD_END"], 5)
            self.check_times(rows["memspan_kv_put"])
            member.stdin.close()
            self.assertEqual(member.wait(SECONDS), 0)

    def test_a_job_writes_it_at_its_end(self):
        code, _, errors = run("-n", 2, WATCHED, env=environment(MEMSPAN_PTRACER=self.folder))
        self.assertEqual((code, errors), (0, ""))
        files = os.listdir(self.folder)
        self.assertEqual(len(files), 2)
        for file in files:
            rows = last_rows(os.path.join(self.folder, file))
            self.assertEqual(rows["shmem_long_p"]["GOOD_END"], 500)
            self.assertEqual(rows["shmem_long_put"]["GOOD_END"], 500)
            self.check_times(rows["shmem_barrier_all"])

    def test_a_folder_that_is_not_there_is_a_warning(self):
        code, _, errors = run("-n", 1, WATCHED, env=environment(MEMSPAN_PTRACER="/no/where"))
        self.assertEqual(code, 0)
        self.assertEqual(errors.count("the table of calls is lost: opening /no/where/ptracer_"), 1, errors)


if __name__ == "__main__":
    unittest.main()
