# SPDX-License-Identifier: Apache-2.0
"""MEMSPAN_TRACE: one timeline of a job in the trace-event format."""

import collections
import json
import os
import re
import signal
import tempfile
import unittest

from jobs.launcher import SECONDS, environment, run, until
from watched import DONE, WATCHED, end, jobs_of, wait_until_told, watched


def parts(events):
    """The complete events by (process, thread), and the metadata by (name, process)."""
    tracks = collections.defaultdict(list)
    metadata = {}
    for event in events:
        if event["ph"] == "X":
            tracks[event["pid"], event["tid"]].append(event)
        else:
            metadata[event["name"], event["pid"]] = event["args"]
    return tracks, metadata


class TraceTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "trace.json")

    def read(self, file=None):
        with open(file or self.file, encoding="utf-8") as text:
            return json.load(text)

    def check_nesting(self, track):
        """Events of a thread lie within each other or apart; times are whole nanoseconds."""
        open_until = []
        for event in sorted(track, key=lambda one: (one["ts"], -one["dur"])):
            begin, end = round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000)
            while open_until and open_until[-1] <= begin:
                open_until.pop()
            self.assertTrue(not open_until or end <= open_until[-1], event)
            open_until.append(end)

    def trace(self, ranks, *options, **variables):
        code, _, errors = run("-n", ranks, *options, WATCHED,
                              env=environment(MEMSPAN_TRACE=self.file, **variables))
        self.assertEqual((code, errors), (0, ""))

    def test_all_processes_are_on_one_timeline(self):
        self.trace(3)
        trace = self.read()
        self.assertRegex(trace["otherData"]["owner"], "^job-[0-9a-f]{16}$")
        tracks, metadata = parts(trace["traceEvents"])
        self.assertEqual({process for process, _ in tracks}, {0, 1, 2})
        for (process, _), track in tracks.items():
            self.assertRegex(metadata["process_name", process]["name"], rf"^PE {process} \(process \d+ on .+\)$")
            self.check_nesting(track)
            done = collections.Counter(event["cat"] for event in track)
            moved = collections.Counter()
            for event in track:
                moved[event["cat"]] += event["args"].get("bytes", 0)
            self.assertEqual({kind: (done[kind], moved[kind]) for kind in DONE}, DONE)
            self.assertEqual(done["collective"], 5)
            self.assertEqual({event["args"]["peer"] for event in track if event["cat"] == "put"},
                             {(process + 1) % 3})
        # The clock is one: nobody's last barrier ends before another's begins.
        barriers = [[event for event in track if event["cat"] == "collective"][-1] for track in tracks.values()]
        self.assertGreaterEqual(min(event["ts"] + event["dur"] for event in barriers),
                                max(event["ts"] for event in barriers))

    def test_hosts(self):
        with watched(2, "--simulate-hosts", "2", MEMSPAN_TRACE=self.file) as job:
            # Only PE 0 has to wait: PE 1 may come last to everything.
            wait_until_told(job, 0)
            self.assertEqual(end(job), (0, ""))
        tracks, _ = parts(self.read()["traceEvents"])
        self.assertEqual({process for process, _ in tracks}, {0, 1})
        for track in tracks.values():
            self.check_nesting(track)
        self.assertTrue([event for (process, _), track in tracks.items() for event in track
                         if process == 0 and event["cat"] == "wait" and event["args"].get("for") == 1])

    def test_a_file_of_each_rank(self):
        self.file += ".%r"
        self.trace(2)
        for rank in (0, 1):
            tracks, _ = parts(self.read(self.file.replace("%r", str(rank)))["traceEvents"])
            self.assertEqual({process for process, _ in tracks}, {rank})

    def test_the_next_job_begins_anew(self):
        self.trace(1)
        owner = self.read()["otherData"]["owner"]
        self.trace(1)
        self.assertNotEqual(self.read()["otherData"]["owner"], owner)
        self.assertEqual(len(parts(self.read()["traceEvents"])[0]), 1)

    def test_a_killed_process_loses_its_own_events_only(self):
        with watched(3, "--keep-going", MEMSPAN_TRACE=self.file) as job:
            until(SECONDS, "PE 1 is there", lambda: jobs_of(job.pid))
            (pid,) = [member["pid"] for member in jobs_of(job.pid)[0]["members"] if member["rank"] == 1]
            os.kill(pid, signal.SIGKILL)
            job.wait(SECONDS)
        tracks, _ = parts(self.read()["traceEvents"])
        self.assertEqual({process for process, _ in tracks}, {0, 2})

    def test_who_ends_the_job_is_on_it(self):
        for end in ("global_exit", "exit"):
            with self.subTest(end=end):
                code, _, _ = run("-n", 2, WATCHED, end, env=environment(MEMSPAN_TRACE=self.file))
                self.assertEqual(code, 3)
                tracks, _ = parts(self.read()["traceEvents"])
                self.assertIn(0, {process for process, _ in tracks})

    def test_a_place_that_cannot_be_written(self):
        with watched(2, MEMSPAN_TRACE="/no/where") as job:
            # Before the job ends, and once.
            self.assertIn("MEMSPAN_TRACE: /no/where cannot be written, so the trace will be lost: the folder /no/",
                          job.stderr.readline().decode())
            code, errors = end(job)
        self.assertEqual(code, 0)
        self.assertNotIn("will be lost", errors)
        self.assertEqual(len(re.findall("the trace is lost: .*opening /no/where", errors)), 2, errors)
