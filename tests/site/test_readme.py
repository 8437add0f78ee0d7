# SPDX-License-Identifier: Apache-2.0
"""The README is short, its links resolve, its pictures are current, and a named test runs each of its programs. Also the
project's other files: the changelog is cut into releases, and a contact for security can be entered."""

import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "compare")]

import pages  # noqa: E402
import record  # noqa: E402
import rows  # noqa: E402

README = ROOT / "README.md"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.S | re.M)
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMANDS = (
    "bash examples/matmul_allreduce/scripts/run.sh -ranks 2 -M 1024 -K 2048 -N 8192",
    "bash scripts/test.sh",
)
SECTIONS = ["Why", "Status", "Install", "Three programs", "How fast", "Which tool when", "Documentation"]


def without_code(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", BLOCK.sub("", text))


def anchors(page: pathlib.Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def dead_links(page: pathlib.Path, text: str) -> list[str]:
    dead = []
    for link in LINK.findall(without_code(text)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if re.match(r"https?:", link):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(f"{page.name}: {link}")
    return dead


class Readme(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = README.read_text(encoding="utf-8")
        cls.blocks = [(block["language"], block["text"]) for block in BLOCK.finditer(cls.text)]

    def test_it_is_short_and_in_order(self):
        self.assertLessEqual(self.text.count("\n"), 150)
        self.assertEqual(re.findall(r"^## (.*)$", self.text, re.M), SECTIONS)

    def test_it_shows_the_two_commands(self):
        shown = [line for language, text in self.blocks if language == "sh" for line in text.splitlines()]
        self.assertLessEqual(set(COMMANDS), set(shown))

    def test_it_never_installs_from_an_index(self):
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "skills").rglob("*.md")]:
            self.assertIsNone(re.search(r"pip install (?:\S+ )*memspan(?=[\s`]|$)", page.read_text(encoding="utf-8")), page.name)

    def test_each_program_has_a_command_and_an_output_and_a_test_that_compares_it(self):
        shell = (ROOT / "tests/install/install_test.sh").read_text(encoding="utf-8").split("case_readme() {")[1].split("\n}\n")[0]
        python = (ROOT / "tests/python/test_readme.py").read_text(encoding="utf-8")
        words = {"c": re.findall(r"program_of_readme (\w+)", shell), "python": re.findall(r'shown\("(\w+)"\)', python)}
        self.assertIn("output_of_readme", (ROOT / "tests/install/install_test.sh").read_text(encoding="utf-8"))
        programs = [i for i, (language, _) in enumerate(self.blocks) if language in words]
        self.assertEqual(len(programs), 3)
        for i in programs:
            language, text = self.blocks[i]
            self.assertEqual([language for language, _ in self.blocks[i + 1 : i + 3]], ["sh", "text"])
            self.assertTrue(any(word in text for word in words[language]), text)

    def test_links_resolve(self):
        for page in [*ROOT.glob("*.md"), *(ROOT / "skills").glob("*.md"), ROOT / "docs/index.md", ROOT / "docs/start.md", ROOT / "docs/stability.md"]:
            self.assertEqual(dead_links(page, page.read_text(encoding="utf-8")), [])

    def test_a_dead_link_is_found(self):
        self.assertEqual(dead_links(README, "[a](docs/cann.md#sources-in-ascendc) [b](https://example.org) `[c](d.md)`"), [])
        self.assertEqual(dead_links(README, "[a](docs/cann.md#no)\n[b](no.md)"), ["README.md: docs/cann.md#no", "README.md: no.md"])


class ProjectFiles(unittest.TestCase):
    def test_releases_of_the_changelog_are_short_and_grouped(self):
        sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.M)[1:]
        self.assertTrue(sections[0].startswith("Unreleased\n"))
        self.assertGreaterEqual(len(sections), 3)
        # That of the last release, unless the next one has begun.
        begun = re.match(r"Unreleased\n\nVersion (\S+): ", sections[0])
        version = begun[1] if begun else sections[1].split()[0]
        self.assertEqual(version, (ROOT / "VERSION").read_text(encoding="utf-8").strip())
        for section in sections[1:]:
            self.assertRegex(section, r"^\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d\n")
            self.assertLessEqual(section.count("\n"), 40)
        for section in sections:
            groups = re.findall(r"^### (.*)$", section, re.M)
            self.assertEqual(groups, [name for name in ("Added", "Changed", "Fixed") if name in groups])

    def test_the_security_page_has_a_field_for_a_contact(self):
        self.assertRegex((ROOT / "SECURITY.md").read_text(encoding="utf-8"), r"(?m)^\| security contact \| \S.* \|$")


class Pictures(unittest.TestCase):
    def test_the_overview_is_readable_in_both_colour_schemes(self):
        path = ROOT / "docs/pictures/overview.svg"
        root = tree.fromstring(path.read_text(encoding="utf-8"))
        names = [element.tag.rpartition("}")[2] for element in root.iter()]
        self.assertIn("title", names)
        self.assertEqual(root.find("{*}rect").get("class"), "page")  # its own background
        style = root.find("{*}style").text
        light, dark = style.split("@media (prefers-color-scheme: dark)")
        used = {element.get("class") for element in root.iter()} - {None}
        for name in used:
            self.assertIn(f".{name}{{", light)
            self.assertIn(f".{name}{{", dark)
        self.assertIn(path.relative_to(ROOT).as_posix(), README.read_text(encoding="utf-8"))

    def test_the_measurements_are_those_of_the_records(self):
        records = record.records()
        self.assertGreaterEqual(len(records), 2)
        self.assertEqual([path.relative_to(ROOT).as_posix() for path in pages.changes(records)], [], "run python3 benchmarks/pages.py")
        self.assertEqual(pages.missing(records), [])

    def test_the_chart_has_every_row_of_two_processes(self):
        pairs = {job.name for job in rows.jobs(quick=True) if job.processes == 2}
        _, bars = pages.of_two_processes(record.records())
        self.assertEqual(len(bars), sum(row.job in pairs for row in rows.rows(2)))
        self.assertTrue(any(bar.times_as_fast < 1 for bar in bars))

    def test_measured_tables_are_narrow(self):
        for page in pages.pages():
            for found in pages.MARK.finditer(page.read_text(encoding="utf-8")):
                self.assertEqual([line for line in found[0].split("\n") if line.startswith("|") and line.count("|") > pages.COLUMNS + 1], [], page.name)


if __name__ == "__main__":
    unittest.main()
