# SPDX-License-Identifier: Apache-2.0
"""Tables of the documents have a head, and as many cells in each row: an empty line or a bar too many makes text of them."""

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


class Tables(unittest.TestCase):
    def test_what_is_wrong_is_found(self):
        head = "| a | b |\n|---|---|\n"
        self.assertEqual(wrong_rows(head + "| 1 | `x\\|y` |\n\ntext\n```\n| c |\n```\n"), [])
        self.assertEqual(wrong_rows(head + "| 1 | 2 | 3 |\n"), ["3: | 1 | 2 | 3 |"])
        self.assertEqual(wrong_rows(head + "\n| 1 | 2 |\n"), ["4: | 1 | 2 |"])

    def test_those_of_the_documents(self):
        pages = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))]
        self.assertGreater(len(pages), 50)
        for page in pages:
            with self.subTest(page=str(page.relative_to(ROOT))):
                self.assertEqual(wrong_rows(page.read_text()), [])


if __name__ == "__main__":
    unittest.main()
