# SPDX-License-Identifier: Apache-2.0
"""Facts that pages once had wrong: numbers come from the code, limits are stated first, and false sentences stay away."""

import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What was claimed, and is not so.
FALSE = {
    r"ranks of a group are on one host|processes of a group are on one host": "a group's ranks may be on several hosts (memspan/group.h)",
    r"[Mm]istakes and deaths are exceptions": "calls that have a result return a code or None (docs/python.md)",
    r"[Ww]hat is not there answers NOT_SUPPORTED": "functions that cannot work return NOT_SUPPORTED; unknown names do not link",
    r"nothing leaves the host": "copies of pools reach other hosts (docs/hosts.md)",
    r"[Hh]osts of a job \| as many as": "the store's answer limits a job of several hosts (docs/scale.md)",
    r"spins? (?:for )?(?:about )?(?:a microsecond|1 µs|up to a millisecond)": "docs/architecture.md, \"Waiting\", describes waits; link to it",
}
# Pages that still have so many of them; remove a page when it has none.
KNOWN = {}
# What a page's first paragraph says.
FIRST = {
    "docs/engines.md": ["host memory", "GPU", "never with a model", "RDMA"],
    "docs/kv_pool.md": ["host memory", "GPU"],
    "docs/transports.md": ["RDMA has never been run"],
    "docs/launchers.md": ["`srun` was tried by hand on one host", "`flux run` was never tried"],
    "docs/kernels.md": ["ran on one NVIDIA H100"],
    "docs/cuda.md": ["Several GPUs of one host"],
}


def texts():
    """(file, text) of what users read: pages, headers, manuals, modules."""
    patterns = ("README.md", "docs/*.md", "docs/man/*.in", "include/**/*.h", "python/**/*.py")
    for path in sorted(path for pattern in patterns for path in ROOT.glob(pattern)):
        yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")


def constant(path, name):
    """The number of `name = UNIT(NUMBER)` or `name = NUMBER` in a source."""
    return int(re.search(rf"\b{name} = (?:std::chrono::\w+\()?(\d+)", (ROOT / path).read_text())[1])


class Facts(unittest.TestCase):
    def test_false_sentences_stay_away(self):
        for name, text in texts():
            found = []
            for pattern, truth in FALSE.items():
                if "architecture.md" not in name:
                    found += [f"{name}: \"{hit[0]}\": {truth}" for hit in re.finditer(pattern, re.sub(r"\s+", " ", text))]
            self.assertLessEqual(len(found), KNOWN.get(name, 0), "\n".join(found))

    def test_pages_begin_with_what_was_not_tested(self):
        for page, words in FIRST.items():
            beginning = (ROOT / page).read_text(encoding="utf-8").partition("\n## ")[0]
            for word in words:
                self.assertIn(word, beginning, page)

    def test_the_page_describes_waits_as_the_code_does(self):
        page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
        waiting = page[page.index("## Waiting") :].partition("\n## ")[0]
        wait = "src/node/wait.cc"
        misses, skips = re.search(r"SpinHabit spin_habit\{(\d+), (\d+)\}", (ROOT / "src/node/wait.h").read_text()).groups()
        for words in (
            f"looks {constant('src/world/world.cc', 'kSpins')} times",
            f"spins for up to {constant(wait, 'kSpin')} ms",
            f"after {constant(wait, 'kAwakeWhereSpinsHelp')} ms sleeps",
            f"After {misses} spins in a row",
            f"at most {skips} waits apart",
            f"sleep after {constant(wait, 'kAwake')} µs",
            f"a spin of {constant(wait, 'kTry')} µs",
        ):
            self.assertIn(words, waiting)

    def test_globals_are_as_few_as_the_page_says(self):
        library = ROOT / "build/lib/libmemspan.so"
        if not library.is_file():
            self.skipTest("build/ has no library")
        symbols = subprocess.run(["nm", "-C", library], capture_output=True, text=True, check=True).stdout
        objects = set(re.findall(r"^\w+ [bBdD] (.*\bmemspan\b.*)$", symbols, re.M))
        mutable = {name for name in objects if not re.search(r"^guard variable|^v?table|^typeinfo|[: ]k[A-Z]\w*$|capi::process_state$|::lifecycle$", name)}
        most = int(re.search(r"at most (\d+) other mutable objects", (ROOT / "docs/architecture.md").read_text())[1])
        self.assertGreater(len(mutable), 20)
        self.assertLessEqual(len(mutable), most, "\n".join(sorted(mutable)))

    def test_the_texts_of_the_largest_job_fit_into_one_value(self):
        longest = int(re.search(r"the longest text, (\d+) bytes", (ROOT / "docs/scale.md").read_text())[1])
        most = int(re.search(r"kMostPeers = (\d+);", (ROOT / "src/node/segment.h").read_text())[1])
        share = 2**23 // most - 192
        self.assertGreaterEqual(share, longest)
        self.assertIn(f"texts of up to {share} bytes", (ROOT / "docs/scale.md").read_text())
        self.assertIn(f"| PEs of a job on several hosts | {most:,}", (ROOT / "docs/limits.md").read_text())


if __name__ == "__main__":
    unittest.main()
