# SPDX-License-Identifier: Apache-2.0
"""docs/messages/: every message has a cure, every pattern a message, and both are found again by a real line."""

import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))

import message_sources  # noqa: E402
import messages  # noqa: E402


class Messages(unittest.TestCase):
    def test_none_is_missing(self):
        self.assertEqual(messages.problems(), [])

    def test_none_is_overlooked(self):
        found = message_sources.messages()
        self.assertGreater(len(found), 2000)
        texts = {m.text for m in found}
        for known in ("pe is …, allowed are 0 to …", "this process is in a job already", "endpoint … is gone: process … has ended"):
            self.assertIn(known, texts)

    def test_a_new_message_is_found(self):
        cpp = 'Status f() {\n  return Status(Code::kTimeout, fmt::format("the {} did " "not come", what));\n}\n'
        found = list(message_sources._of_cpp("src/x.cc", cpp))
        self.assertEqual([(m.line, m.kind, m.code, m.text) for m in found], [(2, "message", "TIMEOUT", "the … did not come")])
        python = 'def f(x: "a type or none"):\n  """Says what it does."""\n  raise ValueError(f"{x} is" + " no size")\n'
        self.assertEqual([(m.line, m.code, m.text) for m in message_sources._of_python("python/x.py", python)], [(3, "ValueError", "… is no size")])

    def test_a_context_and_its_message_are_told_apart(self):
        cpp = 'MEMSPAN_TRY(check(a == b, "they differ a lot"), "looking at both");'
        found = [(m.kind, m.text) for m in message_sources._of_cpp("src/x.cc", cpp)]
        self.assertEqual(found, [("doing", "looking at both"), ("message", "they differ a lot")])

    def test_a_line_is_explained(self):
        def explained(text):
            return subprocess.run([sys.executable, ROOT / "tools/dev/messages.py", "--explain", text], capture_output=True, text=True)

        line = "memspan: PE 1: shmem_long_p: pe is 9, allowed are 0 to 3"
        self.assertIn("No such PE", explained(line).stdout)
        self.assertIn("errno 13", explained("opening it: Permission denied (errno 13)").stdout)
        self.assertEqual(explained("colourless green ideas").returncode, 1)


if __name__ == "__main__":
    unittest.main()
