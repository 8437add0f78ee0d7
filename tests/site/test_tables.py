# SPDX-License-Identifier: Apache-2.0
"""Tables of the documents have a head without an empty heading, and as many cells in each row: an empty line or a bar too
many makes text of them."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("docs", "examples", "src", "benchmarks", "tests", "skills")


def wrong_rows(text: str) -> list[str]:
    """'LINE: ROW' of those that are no table's, or have other cells than its head."""
    wrong, cells, is_code, before = [], None, False, ""
    lines = text.split("\n") + [""]
    for number, line in enumerate(lines, 1):
        is_code ^= line.lstrip().startswith("```")
        if is_code or not line.startswith("|"):
            cells = None
        else:
            if not before.startswith("|"):
                rule = lines[number]
                cells = rule.count("|") if re.fullmatch(r"\|[\s:|-]+\|", rule) else -1
            if len(re.findall(r"(?<!\\)\|", line)) != cells:
                wrong.append(f"{number}: {line[:80]}")
        before = line
    return wrong


def empty_headings(text: str) -> list[str]:
    """'LINE: HEAD' of the tables that have a column without a heading."""
    empty, is_code = [], False
    lines = text.split("\n")
    for number, (line, rule) in enumerate(zip(lines, lines[1:]), 1):
        is_code ^= line.lstrip().startswith("```")
        if is_code or not re.fullmatch(r"\s*\|(\s*:?-+:?\s*\|)+\s*", rule):
            continue
        if not all(cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]):
            empty.append(f"{number}: {line[:80]}")
    return empty


class Tables(unittest.TestCase):
    @staticmethod
    def pages():
        return [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]

    def test_what_is_wrong_is_found(self):
        head = "| a | b |\n|---|---|\n"
        self.assertEqual(wrong_rows(head + "| 1 | `x\\|y` |\n\ntext\n```\n| c |\n```\n"), [])
        self.assertEqual(wrong_rows(head + "| 1 | 2 | 3 |\n"), ["3: | 1 | 2 | 3 |"])
        self.assertEqual(wrong_rows(head + "\n| 1 | 2 |\n"), ["4: | 1 | 2 |"])

    def test_empty_headings_are_found(self):
        for head in ("| | b |", "| a | |", "|  |  |"):
            self.assertEqual(empty_headings(f"text\n\n{head}\n|---|---:|\n| 1 | 2 |\n"), [f"3: {head}"])
        self.assertEqual(empty_headings("| a | `x\\|y` |\n| --- | :---: |\n| | |\n\n```\n| | b |\n|---|---|\n```\n"), [])

    def test_those_of_the_documents_have_headings(self):
        empty = [f"{page.relative_to(ROOT)}:{head}" for page in self.pages() for head in empty_headings(page.read_text())]
        self.assertEqual("\n".join(empty), "", "a column of a table has no heading")

    def test_those_of_the_documents(self):
        pages = self.pages()
        self.assertGreater(len(pages), 50)
        for page in pages:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(wrong_rows(page.read_text()), [])


if __name__ == "__main__":
    unittest.main()
