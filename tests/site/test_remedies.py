# SPDX-License-Identifier: Apache-2.0
"""Remedies (src/core/status.h): identifiers, plain English, and no message that names an unknown one."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))

import remedies  # noqa: E402

# Words that docs/style and the language rules forbid in messages.
_FORBIDDEN = re.compile(
    r"\b(there|here|tells?|told|says? so|who|whoever|whom|nobody|somebody|anew|alike|as ever|of its own|kin|meanwhile|"
    r"wholly|mend|cure|where that|stands|lies|goes|comes|gives|is none|is no)\b",
    re.IGNORECASE,
)


class Remedies(unittest.TestCase):
    def test_the_reader_reads_both_languages(self):
        paths = {remedy.path for remedy in remedies.remedies()}
        self.assertIn("src/capi/failures.cc", paths)
        self.assertIn("tools/launcher/job.cc", paths)
        self.assertIn("python/memspan/kv_pool.py", paths)
        self.assertGreaterEqual(len(remedies.remedies()), 40)

    def test_identifiers(self):
        found = [remedy.identifier for remedy in remedies.remedies()]
        self.assertEqual(sorted(set(found)), sorted(found))
        for identifier in found:
            self.assertRegex(identifier, r"^[a-z]+(-[a-z]+)*$")

    def test_every_declaration_is_read(self):
        for top, (suffix, begins) in {"src": (".cc", "MEMSPAN_REMEDY("), "tools": (".cc", "MEMSPAN_REMEDY(")}.items():
            for path in (ROOT / top).rglob("*.h"):
                text = path.read_text(encoding="utf-8").replace("#define MEMSPAN_REMEDY(", "")
                if path.name != "status.h":
                    self.assertNotIn(begins, text, f"{path}: headers are not read: declare it in a {suffix} file")

    def test_plain_english(self):
        for remedy in remedies.remedies():
            with self.subTest(identifier=remedy.identifier):
                for text in (remedy.meaning, remedy.action):
                    self.assertIsNone(_FORBIDDEN.search(text), text)
                    self.assertRegex(text, r"^\S.*[.?]$")
                    self.assertNotIn('"', text)
                    for sentence in re.split(r"[.;:?] ", text):
                        self.assertLessEqual(len(sentence.split()), 25, sentence)

    def test_the_page_has_them(self):
        page = remedies.page()
        for remedy in remedies.remedies():
            self.assertIn(f"### {remedy.identifier}\n\n{remedy.meaning}\n\n**Do:** {remedy.action}\n", page)

    def test_documents_name_known_identifiers(self):
        known = {remedy.identifier for remedy in remedies.remedies()}
        for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs/man").glob("*.in")]:
            named = re.findall(r"\[memspan-explain ([a-z-]+)\]", path.read_text(encoding="utf-8"))
            self.assertLessEqual(set(named), known, path)


if __name__ == "__main__":
    unittest.main()
