# SPDX-License-Identifier: Apache-2.0
"""memspan-perf: every test once on two processes, its JSON, its report, comparisons, and what it refuses.
What the figures are is not looked at, but that they can be such."""

import html.parser
import json
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from jobs.commands import is_alive
from jobs.launcher import environment

PERF = os.environ["MEMSPAN_PERF"]
OSHRUN = os.environ["MEMSPAN_OSHRUN"]
LIBRARY = os.environ["MEMSPAN_LIBRARY"]
ON_HOSTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "support", "oshrun_on_hosts.sh")
QUICK = ["-r", "1", "--samples", "20", "--seconds", "0.002", "--warm-up", "2", "--window", "4", "--batch", "4"]
LIMIT_S = 150
IS_SANITIZED = bool(os.environ.get("MEMSPAN_SANITIZE"))
NUMBERS = ("--pes", "--rounds", "--samples", "--seconds", "--warm-up", "--window", "--batch", "--timeout", "--sizes")
GROUPS = ("rma", "atomics", "collectives", "groups", "pools", "transfers")


def start(command, variables=None):
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False,
                           stdin=subprocess.DEVNULL, env=variables or environment())
    return ended.returncode, ended.stdout, ended.stderr


def perf(*words):
    return start([PERF, *words])


def listed():
    """{group: names}"""
    groups = {}
    for line in perf("list")[1].splitlines():
        if line and not line.startswith(" "):
            names = groups.setdefault(line, [])
        elif line:
            names.append(line.split()[0])
    return groups


def wait_for(condition):
    """What it gives, as soon as that is true."""
    end = time.monotonic() + LIMIT_S
    while not (result := condition()):
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.02)
    return result


def descendants_of(parent):
    parents = {}
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            pass  # no process, or not any more
    found, new = set(), {parent}
    while new:
        new = {child for child, its_parent in parents.items() if its_parent in new} - found
        found |= new
    return found


def workers_of(parent):
    """All below it, as soon as two of them measure."""
    found = descendants_of(parent)
    count = 0
    for process in found:
        try:
            with open(f"/proc/{process}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        count += words[0].endswith(b"memspan-perf") and b"--worker" in words
    return found if count == 2 else None


class Page(html.parser.HTMLParser):
    """Which elements a page has, and that each that is opened is closed."""

    VOID = {"meta", "link", "br", "line", "circle", "rect", "polyline", "polygon"}

    def __init__(self):
        super().__init__()
        self.open, self.count, self.references, self.wrong = [], {}, [], []

    def handle_starttag(self, tag, attributes):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.references += [value for name, value in attributes if name in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag in self.VOID:
            return
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


class PerfTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def measured(self, *words):
        """The document that --json prints."""
        code, out, errors = perf(*words, *QUICK, "--json")
        self.assertEqual((code, errors), (0, ""))
        return json.loads(out)

    def check_figures(self, run, names, sizes):
        rows = {(row["test"], row["bytes"]): row for row in run["figures"]}
        self.assertEqual({name for name, _ in rows}, set(names))
        for (name, size), row in rows.items():
            with self.subTest(name, size=size):
                self.assertIn(size, [0, *sizes])
                times = [row["ns"][key] for key in ("min", "p50", "p90", "p99", "p99.9", "max")]
                self.assertEqual(times, sorted(times))
                self.assertGreater(times[0], 0)
                self.assertTrue(all(map(math.isfinite, times)))
                self.assertGreaterEqual(row["ns"]["samples"], 5)

    def test_every_group(self):
        groups = listed()
        self.assertEqual(tuple(groups), GROUPS)
        for group, names in groups.items():
            with self.subTest(group):
                run = self.measured(group, "-n", "2", "-s", "8,4k")["run"]
                self.assertEqual((run["pes"], run["rounds"], run["one_host"]), (2, 1, True))
                self.check_figures(run, names, (8, 4096))
                self.assertGreater(run["baselines"]["copies"][0]["ns"], 0)

    def test_three_processes(self):
        run = self.measured("barrier", "alltoall", "group-all-reduce", "bm-write", "-n", "3", "-s", "64")["run"]
        self.check_figures(run, ("barrier", "alltoall", "group-all-reduce", "bm-write"), (64,))

    def test_simulated_hosts(self):
        run = self.measured("put", "atomic-fetch-add", "reduce", "bm-write", "trans-write", "-s", "8", "--simulate-hosts", "1+1")["run"]
        self.check_figures(run, ("put", "atomic-fetch-add", "reduce", "bm-write", "trans-write"), (8,))
        self.assertFalse(run["one_host"])

    def test_in_a_job_of_the_launcher(self):
        """On the hosts of the test session, where it has some."""
        code, out, errors = start(["sh", ON_HOSTS, OSHRUN, "-n", "2", "--simulate-hosts", "1+1", PERF, "put", "barrier",
                                   "-s", "8", *QUICK[2:], "--json"], dict(os.environ))
        self.assertEqual(code, 0, errors)
        self.check_figures(json.loads(out)["run"], ("put", "barrier"), (8,))

    def test_a_table(self):
        code, out, errors = perf("put", "put-rate", "barrier", "-s", "8,1k", *QUICK)
        self.assertEqual((code, errors), (0, ""))
        for pattern in (r"^put: ", r"^ +8 B +\d", r"^ +1 KiB +\d", r"p99\.9", r"memcpy", r"M/s", r"cache line from one core"):
            self.assertRegex(out, re.compile(pattern, re.M))

    def test_the_report_is_one_page(self):
        report = os.path.join(self.folder, "report.html")
        code, _, errors = perf("put", "put-bandwidth", "barrier", "atomics", "-s", "8:64k:8", *QUICK,
                               "--report", report, "--svg", self.folder)
        self.assertEqual((code, errors), (0, ""))
        with open(report, encoding="utf-8") as file:
            text = file.read()
        page = Page()
        page.feed(text)
        self.assertEqual((page.wrong, page.open), ([], []))
        self.assertEqual(page.count["svg"], 3)
        self.assertNotIn("script", page.count)
        self.assertTrue(all(reference.startswith("#") for reference in page.references), page.references)
        self.assertNotRegex(text.lower(), r"\b(nan|inf)\b")
        self.assertEqual(sorted(name for name in os.listdir(self.folder) if name.endswith(".svg")),
                         ["put-bandwidth.svg", "put.svg", "single-operations.svg"])

    @unittest.skipIf(IS_SANITIZED, "does not apply: a preloaded library would come before the sanitizer's")
    def test_two_libraries_alternate(self):
        other = os.path.join(self.folder, "libmemspan.so.0")
        shutil.copy(os.path.realpath(LIBRARY), other)
        report = os.path.join(self.folder, "report.html")
        words = ["put", "barrier", "-s", "8", *QUICK[2:], "-r", "2", "--library", other, "--json", "--report", report]
        code, out, errors = perf(*words)
        self.assertEqual((code, errors), (0, ""))
        document = json.loads(out)
        self.assertEqual(document["other"]["library"], os.path.realpath(other))
        self.assertEqual(document["run"]["library"], os.path.realpath(LIBRARY))
        self.assertEqual(document["pairing"], "alternating")
        self.assertEqual([(ratio["test"], ratio["bytes"]) for ratio in document["ratios"]], [("put", 8), ("barrier", 0)])
        for ratio in document["ratios"]:
            low, high = ratio["quartiles"]
            self.assertTrue(0 < low <= ratio["ratio"] <= high)
        with open(report, encoding="utf-8") as file:
            self.assertIn('id="comparison"', file.read())

    def test_a_library_that_is_not_loaded_is_no_comparison(self):
        """The loader passes over what it cannot load."""
        text = os.path.join(self.folder, "libmemspan.so")
        with open(text, "w") as file:
            file.write("no library\n")
        for other in (text, "/bin/true"):
            with self.subTest(other):
                code, out, errors = perf("put", "-s", "8", *QUICK, "--library", other)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(f"--library {os.path.realpath(other)} was not loaded; the job used {os.path.realpath(LIBRARY)}", errors)

    def test_a_saved_run_is_compared_with(self):
        saved = os.path.join(self.folder, "run.json")
        self.assertEqual(perf("put", "-s", "8,64", *QUICK, "--save", saved)[0], 0)
        code, out, errors = perf("put", "-s", "64,1k", *QUICK, "--compare", saved)
        self.assertEqual((code, errors), (0, ""))
        self.assertRegex(out, r"put +64 B +\d+\.\d{3} \(memcpy \d+\.\d{3}\)\n")
        self.assertNotIn("note:", out)

    def test_an_unlike_saved_run_is_refused_before_anything_is_measured(self):
        saved = os.path.join(self.folder, "run.json")
        run = self.measured("put", "-s", "8", "--save", saved)["run"]
        self.assertEqual((run["pes"], run["window"], run["batch"], run["hosts"]), (2, 4, 4, ""))
        for words, part in (([*QUICK, "-n", "3"], "PEs (-n): 3 here and 2 in the saved run"),
                            ([*QUICK[:-4], "--batch", "4"], "--window: 64 here and 4 in the saved run"),
                            ([*QUICK[:-2], "--batch", "5"], "--batch: 5 here and 4 in the saved run")):
            with self.subTest(words):
                code, out, errors = perf("put", "-s", "8", *words, "--compare", saved, "--oshrun", "/bin/false")
                self.assertEqual((code, out), (2, ""))
                self.assertIn(f"--compare {saved}", errors)
                self.assertIn(part, errors)

    def test_a_saved_run_of_other_hosts_is_refused(self):
        """Whether PEs share a host only their job knows."""
        saved = os.path.join(self.folder, "run.json")
        self.assertEqual(perf("put", "-s", "8", *QUICK, "--save", saved)[0], 0)
        code, out, errors = perf("put", "-s", "8", *QUICK, "--compare", saved, "--simulate-hosts", "2")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("several here and one in the saved run", errors)
        code, out, errors = start([OSHRUN, "-n", "2", "--simulate-hosts", "2", PERF, "put", "-s", "8", *QUICK[2:], "--compare", saved])
        self.assertNotEqual(code, 0)
        self.assertEqual(out, "")
        self.assertIn("several here and one in the saved run", errors)

    def test_variables_are_recorded_and_noted(self):
        plain, report = (os.path.join(self.folder, name) for name in ("plain.json", "report.html"))
        self.assertEqual(self.measured("put", "-s", "8", "--save", plain)["run"]["variables"], {})
        trace = os.path.join(self.folder, "trace.json")
        variables = environment(MEMSPAN_TRACE=trace, MEMSPAN_COUNTERS="1", MEMSPAN_PTRACER_KEY="hidden")
        told = f"MEMSPAN_COUNTERS=1, MEMSPAN_PTRACER_KEY=(not recorded), MEMSPAN_TRACE={trace}"
        saved = os.path.join(self.folder, "run.json")
        words = [PERF, "put", "-s", "8", *QUICK, "--compare", plain, "--report", report, "--save", saved]
        code, out, errors = start(words, variables)
        self.assertEqual((code, errors), (0, ""))
        self.assertIn(told, out.split("\n\n")[0])  # the table's head
        self.assertIn(f'note: MEMSPAN_TRACE: "{trace}" here, not set there', out)
        with open(saved) as file:
            document = file.read()
        self.assertEqual(json.loads(document)["run"]["variables"],
                         {"MEMSPAN_COUNTERS": "1", "MEMSPAN_PTRACER_KEY": "(not recorded)", "MEMSPAN_TRACE": trace})
        self.assertEqual(len(json.loads(document)["notes"]), 3)
        with open(report, encoding="utf-8") as file:
            page = file.read()
        self.assertIn(">MEMSPAN_TRACE</th>", page)
        self.assertNotIn("hidden", out + document + page)
        code, out, errors = start([OSHRUN, "-n", "2", PERF, "put", "-s", "8", *QUICK[2:], "--json"])
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(out)["run"]["variables"], {})

    def test_outputs_that_cannot_be_written_are_told_before_anything_is_measured(self):
        for words in (["--save", "/nope/x.json"], ["--report", "/nope/x.html"], ["--report", self.folder], ["--svg", "/nope"]):
            with self.subTest(words):
                code, out, errors = perf("put", "-s", "8", *QUICK, "--oshrun", "/bin/false", *words)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(words[1], errors)
        new, old = (os.path.join(self.folder, name) for name in ("new.html", "old.html"))
        with open(old, "w") as file:
            file.write("old")
        for path in (new, old):
            self.assertIn("the job ended", perf("put", "-s", "8", *QUICK, "--oshrun", "/bin/false", "--report", path)[2])
        self.assertFalse(os.path.exists(new))
        with open(old) as file:
            self.assertEqual(file.read(), "old")
        code, out, errors = start([OSHRUN, "-n", "2", PERF, "put", "-s", "8", *QUICK[2:], "--report", "/nope/x.html"])
        self.assertEqual((code != 0, out), (True, ""))  # and no table
        self.assertIn("--report /nope/x.html", errors)

    def test_a_missing_converter_is_told_before_anything_is_measured(self):
        words = [PERF, "put", "-s", "8", *QUICK, "--oshrun", "/bin/false", "--png", self.folder]
        code, out, errors = start(words, environment(PATH=self.folder))
        self.assertEqual((code, out), (1, ""))
        self.assertIn("there is no rsvg-convert", errors)
        self.assertNotIn("the job ended", errors)
        os.symlink("/bin/true", os.path.join(self.folder, "rsvg-convert"))
        self.assertIn("the job ended", start(words, environment(PATH=self.folder))[2])

    def test_list_takes_tests(self):
        for words in (("list", "atomics", "put"), ("put", "list", "atomics")):
            with self.subTest(words):
                code, out, errors = perf(*words)
                self.assertEqual((code, errors), (0, ""))
                self.assertEqual([line.split()[0] for line in out.splitlines() if line],
                                 ["rma", "put", "atomics", *listed()["atomics"]])
        code, out, errors = perf("list", "pigeon")
        self.assertEqual((code, out), (2, ""))
        self.assertIn('there is no test "pigeon"', errors)

    def test_what_is_wrong_is_named(self):
        for words, part in ((["pigeon"], '"pigeon"'), ([], "no test is named"), (["put", "-s", "many"], '"many"'),
                            (["put", "-s", "8:4"], "larger than the last"), (["put", "-s", "2g"], "too much"),
                            (["put", "-n", "1"], "2 PEs at least"), (["put", "-n", "x"], "x"),
                            (["put", "--samples", "0"], "--samples"), (["put", "-pigeon"], '"-pigeon"'),
                            (["put", "--library", "/no/such.so"], "/no/such.so"), (["put", "--compare", "/no/run"], "/no/run"),
                            (["put", "--svg", "/no/folder"], "/no/folder"),
                            (["put", "--store", "tcp:/here"], '--store: "tcp:/here"'),
                            (["put", "--seconds", "7200"], '"7200" is not a number from 0.001 to 3600'),
                            *((["put", option, "nan"], option) for option in NUMBERS)):
            with self.subTest(words):
                code, out, errors = perf(*words)
                self.assertEqual((code, out), (2, ""))
                self.assertIn(part, errors)
                self.assertIn("see memspan-perf --help", errors)

    def test_a_wrong_saved_run_is_refused_before_anything_is_measured(self):
        wrong = os.path.join(self.folder, "wrong.json")
        for text, part in (("{}", "not a run of memspan-perf"), ('{"format": 1}', 'there is no "library"'),
                           ('{"run": {"format": 1, "library": 3}}', '"library" is no text'), ("[1", "byte 2")):
            with self.subTest(text):
                with open(wrong, "w") as file:
                    file.write(text)
                code, out, errors = perf("put", "-s", "8", *QUICK, "--compare", wrong, "--oshrun", "/bin/false")
                self.assertEqual((code, out), (2, ""))
                self.assertIn("wrong.json", errors)
                self.assertIn(part, errors)

    def test_a_job_of_one_is_refused(self):
        code, _, errors = start([OSHRUN, "-n", "1", PERF, "put", *QUICK[2:]])
        self.assertEqual(code, 2)
        self.assertIn("MEMSPAN_LAUNCH", errors)
        self.assertIn("needs 2 at least", errors)

    def test_a_rank_without_a_launcher_is_none(self):
        """The shell of a batch script has such variables, too."""
        code, out, errors = start([PERF, "put", "-s", "8", *QUICK, "--json"],
                                  environment(RANK="0", SLURM_PROCID="0", SLURM_NTASKS="2"))
        self.assertEqual((code, errors), (0, ""))
        self.assertEqual(json.loads(out)["run"]["pes"], 2)

    def test_options_of_jobs_are_refused_in_one(self):
        code, _, errors = start([OSHRUN, "-n", "2", PERF, "put", "-r", "3"])
        self.assertEqual(code, 2)
        self.assertIn("--rounds", errors)
        self.assertIn("MEMSPAN_LAUNCH is set", errors)

    def test_a_signal_ends_the_job_too(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            with self.subTest(number.name):
                measuring = subprocess.Popen([PERF, "barrier", "-s", "8", "-r", "1", "--seconds", "600", "--samples", "1000000"],
                                             stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                             env=environment())
                self.addCleanup(measuring.wait)
                self.addCleanup(measuring.kill)
                job = wait_for(lambda: workers_of(measuring.pid))
                measuring.send_signal(number)
                self.assertEqual(measuring.wait(LIMIT_S), -number)
                wait_for(lambda: not any(map(is_alive, job)))

    def test_an_ignored_signal_stays_ignored(self):
        """As under nohup."""
        measuring = subprocess.Popen([PERF, "barrier", "-r", "1", "--seconds", "600", "--samples", "1000000"],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     env=environment(), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.addCleanup(measuring.wait)
        self.addCleanup(measuring.kill)
        wait_for(lambda: workers_of(measuring.pid))
        measuring.send_signal(signal.SIGHUP)
        measuring.send_signal(signal.SIGTERM)
        self.assertEqual(measuring.wait(LIMIT_S), -signal.SIGTERM)

    def test_output_that_fails_is_told(self):
        for words in (["list"], ["put", "-s", "8", *QUICK, "--json"], ["--help"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                ended = subprocess.run([PERF, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S, check=False,
                                       stdin=subprocess.DEVNULL, env=environment())
                self.assertEqual(ended.returncode, 1)
                self.assertIn("writing to stdout: No space left", ended.stderr)

    def test_completion_offers_what_list_prints(self):
        completion = os.path.join(os.path.dirname(__file__), "..", "..", "tools", "completion", "oshrun.bash")
        script = f'. {completion}; COMP_WORDS=("{PERF}" ""); COMP_CWORD=1; _memspan_perf; printf "%s\n" "${{COMPREPLY[@]}}"'
        code, out, errors = start(["bash", "-c", script])
        self.assertEqual((code, errors), (0, ""))
        groups = listed()
        self.assertEqual(sorted(out.split()), sorted(["list", "all", *groups, *sum(groups.values(), [])]))

    def test_a_heap_that_is_too_small_is_told(self):
        for words in (["--samples", "1000000", "-s", "8"], ["--samples", "20", "-s", "16m"]):
            with self.subTest(words):
                code, out, errors = start([PERF, "put", "-r", "1", *words], environment(SHMEM_SYMMETRIC_SIZE="1m"))
                self.assertEqual((code, out), (1, ""))
                self.assertIn("SHMEM_SYMMETRIC_SIZE", errors)
                self.assertIn("the job ended with code 1", errors)

    def test_the_seconds_bound_the_warm_up(self):
        """A sample of 16 puts of 1 MiB takes a ten-thousandth of the warm-up samples' time."""
        since = time.monotonic()
        code, out, errors = perf("put-bandwidth", "barrier", "-s", "1m", "-r", "1", "--warm-up", "1000000", "--window", "16",
                                 "--seconds", "0.01", "--json")
        self.assertEqual((code, errors), (0, ""))
        self.check_figures(json.loads(out)["run"], ("put-bandwidth", "barrier"), (1 << 20,))
        self.assertLess(time.monotonic() - since, LIMIT_S / 2)

    def test_what_was_measured_before_a_failure_is_shown(self):
        """The job's first row comes, and then the launcher fails or a signal ends the run."""
        for end, number in (("exit 3", 1), ("kill -INT $PPID; exec sleep 60", -signal.SIGINT)):
            launcher = os.path.join(self.folder, "launcher")
            with open(launcher, "w") as file:
                file.write(f'#!/bin/sh\n"{OSHRUN}" "$@" 2>/dev/null | head -n 2\n{end}\n')
            os.chmod(launcher, 0o755)
            for form in ([], ["--json"]):
                with self.subTest(end=end, form=form):
                    code, out, errors = perf("put", "-s", "8,16", *QUICK, "--oshrun", launcher, *form)
                    self.assertEqual(code, number, errors)
                    if form:
                        document = json.loads(out)
                        self.check_figures(document["run"], ("put",), (8,))
                        self.assertIn("round 1: the job ended", document["incomplete"])
                    else:
                        self.assertRegex(out, r"(?m)^ +8 B ")
                        self.assertNotRegex(out, r"(?m)^ +16 B ")
                        self.assertRegex(out, r"incomplete: round 1: the job ended")

    def test_a_job_that_fails_is_told(self):
        code, _, errors = perf("put", "-s", "8", *QUICK, "--oshrun", "/bin/false")
        self.assertEqual(code, 1)
        self.assertIn("the job ended with code 1", errors)


if __name__ == "__main__":
    unittest.main()
