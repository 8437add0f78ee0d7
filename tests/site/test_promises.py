# SPDX-License-Identifier: Apache-2.0
"""The pages of trust name what is there: promises, tests, targets of the fuzzer."""

import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))

import promises  # noqa: E402


def is_a_module(name: str) -> bool:
    """unit.store.wire is tests/unit/store/wire_test.cc; hosts.paths is tests/hosts/test_paths.py."""
    kind, *rest = name.split(".")
    if kind in ("unit", "network"):
        return (ROOT / "tests" / kind / rest[0] / f"{rest[1]}_test.cc").is_file()
    if kind in ("hosts", "failure"):
        return (ROOT / "tests" / kind / f"test_{rest[0]}.py").is_file()
    return (ROOT / "tests" / pathlib.Path(*name.split("."))).is_dir()


class Promises(unittest.TestCase):
    def test_each_has_a_command_and_the_page_is_current(self):
        self.assertEqual(promises.problems(), [])
        self.assertGreater(len(promises.rows_of_reliability()), 40)

    def test_what_the_readme_names_has_a_promise(self):
        readme = (ROOT / "README.md").read_text()
        said = " ".join(p["text"] for p in promises.promises() if p["where"] == "README.md")
        for name in ("vLLM", "SGLang", "srun", "mpirun", "torchrun", "Kernels", "Mooncake", "etcd", "MemFabric", "CANN SHMEM", "torch.distributed", "TLS"):
            if name in readme:
                self.assertIn(name, said, f"docs/promises.toml has no promise of the README about {name}")

    def test_only_what_passed_as_a_whole_is_shown(self):
        tests = {"a.one": "passed", "a.two": "passed", "b.one": "passed", "b.two": "skipped", "c.one": "failed", "c.two": "passed", "d": "skipped"}
        for pattern, text in (
            ("^a", "shown: 2 passed"),
            ("^b", "shown in part: 1 passed, 1 skipped"),
            ("^c", "**not shown**: 1 passed, 1 failed"),
            ("^d", "not run here: 1 skipped"),
            ("^e", None),
        ):
            self.assertEqual(promises.shown(tests, pattern), text)

    def test_a_part_is_shown_by_its_closing_lines(self):
        text = "passed: again\n\npart        seconds\nrelease        6551\nall            6551\n\n{}\n"
        for closing, result in (
            ("11 passed, 0 failed, 0 skipped", ("release", "shown: 11 passed")),
            ("10 passed, 1 failed, 0 skipped", ("release", "**not shown**: 10 passed, 1 failed")),
            ("10 passed, 0 failed, 1 skipped", ("release", "shown in part: 10 passed, 1 skipped")),
            ("", None),
        ):
            self.assertEqual(promises.of_log(text.format(closing)), result)
        self.assertIsNone(promises.of_log(text.replace("all ", "debs  5\nall ").format("11 passed, 0 failed, 0 skipped")))

    def test_the_page_counts_its_rows(self):
        rows = [["", "", "", result, ""] for result in ("shown: 1 passed", "shown in part: 1 passed, 1 skipped", "**not shown**: 1 failed", "not run", "[figures](a.md)", "not run here: 1 skipped")]
        self.assertEqual(
            promises.count_of(rows),
            "3 of the 6 promises below have been run here (1 are shown, 1 in part, 1 not shown), 1 are figures of another page, and 2 have no result here yet.",
        )
        self.assertIn("0 of the 1 promises below have been run here (0 are shown), 0 are figures of another page, 1 were tried by hand, ", promises.count_of([["", "", "", "by hand: one host", ""]]))

    def test_the_commands_run_something(self):
        if not (ROOT / "build/tests/CTestTestfile.cmake").is_file():
            self.skipTest("build/ has no tests")
        listed = subprocess.run(["ctest", "--test-dir", "build", "-N"], cwd=ROOT, capture_output=True, text=True).stdout
        names = re.findall(r"Test +#\d+: (\S+)", listed)
        for promise in promises.promises():
            if "ctest" in promise:
                self.assertTrue(any(re.search(promise["ctest"], name) for name in names), promise["ctest"])

    def test_the_threat_model_names_tests_and_files_that_are_there(self):
        text = (ROOT / "docs/threat_model.md").read_text()
        modules = re.findall(r"`((?:unit|network|contract|hosts|failure)\.[a-z_.]+)`", text)
        self.assertGreater(len(modules), 25)
        self.assertEqual([name for name in modules if not is_a_module(name)], [])
        sources = {path.name for path in (ROOT / "src").rglob("*")} | {path.name for path in (ROOT / "tests").rglob("*")}
        sources |= {path.name for path in (ROOT / "tools").rglob("*")} | {path.name for path in (ROOT / "python").rglob("*.py")}
        files = re.findall(r"`(?:[\w]+/)*(\w+\.(?:cc|h|py))`", text)
        self.assertEqual([name for name in files if name not in sources], [])

    def test_every_target_of_the_fuzzer_is_told_and_has_a_corpus(self):
        targets = {path.stem for path in (ROOT / "tests/fuzz").glob("*.cc")}
        corpora = {path.name for path in (ROOT / "tests/fuzz/corpus").iterdir()}
        told = set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/fuzzing.md").read_text(), re.M))
        run = set(re.search(r"^targets=\((.*)\)$", (ROOT / "scripts/fuzz.sh").read_text(), re.M)[1].split()) | {"etcd"}
        self.assertEqual(targets, corpora)
        self.assertEqual(targets, told)
        self.assertEqual(targets, run)


if __name__ == "__main__":
    unittest.main()
