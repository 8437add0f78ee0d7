#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The layer check finds what looks up, names file and line, and is content with this tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[3]
TABLE = """
| module | may include | what it holds |
|---|---|---|
| core | | the lowest |
| store | core | keys |
| world | core, store | the job |
| capi | core, world | faces |
"""


class CheckLayersTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "a tree"
        self.write("src/README.md", TABLE)
        self.write("src/core/status.h", "#include <string>\n")
        self.write("src/store/client.h", '#include "core/status.h"\n')
        self.write("include/openshmem/shmem.h", "")

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def check(self, root=None):
        done = subprocess.run([sys.executable, ROOT / "tools/dev/check_layers.py", root or self.root],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def test_this_tree_keeps_its_layers(self):
        code, errors = self.check(ROOT)
        self.assertEqual((code, errors), (0, ""))

    def test_accepts_what_the_table_allows(self):
        self.assertEqual(self.check(), (0, ""))

    def test_names_file_and_line_of_an_include_that_looks_up(self):
        self.write("src/core/bad.cc", '#include "core/status.h"\n\n#include "store/client.h"\n')
        code, errors = self.check()
        self.assertEqual(code, 1)
        self.assertIn("src/core/bad.cc:3:", errors)
        self.assertIn("core may not include", errors)

    def test_a_module_below_is_not_enough_without_the_table(self):
        self.write("src/capi/bad.cc", '# include "store/client.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_only_the_top_module_includes_installed_headers(self):
        self.write("src/capi/good.cc", '#include "openshmem/shmem.h"\n')
        self.assertEqual(self.check()[0], 0)
        self.write("src/world/bad.cc", "#include <openshmem/shmem.h>\n")
        self.assertEqual(self.check()[0], 1)

    def test_relative_includes_are_refused(self):
        self.write("src/world/bad.cc", '#include "../core/status.h"\n')
        self.assertEqual(self.check()[0], 1)

    def test_a_module_opens_its_own_namespace_only(self):
        self.write("src/store/good.h", "namespace memspan::inline core {\nclass Status;\n}\n\nnamespace memspan::inline store {\n}\n")
        self.write("src/store/etcd/good.cc", "namespace memspan::etcd {\n}\n")
        self.assertEqual(self.check(), (0, ""))
        for name in ("memspan", "memspan::store", "memspan::inline core", "memspan::etcd"):
            self.write("src/store/bad.cc", f"#include <string>\n\nnamespace {name} {{\nint number();\n}}\n")
            code, errors = self.check()
            self.assertEqual(code, 1)
            self.assertIn('src/store/bad.cc:3: write "namespace memspan::inline store"', errors)

    def test_examples_see_no_module(self):
        self.write("examples/job/main.cc", '#include "core/status.h"\n')
        code, errors = self.check()
        self.assertEqual(code, 1)
        self.assertIn("examples/job/main.cc:1:", errors)

    def test_a_module_without_a_row_is_an_error_of_the_table(self):
        self.write("src/attic/x.h", "")
        code, errors = self.check()
        self.assertEqual(code, 2)
        self.assertIn("attic", errors)

    def test_a_cycle_is_an_error_of_the_table(self):
        self.write("src/README.md", TABLE.replace("| core | |", "| core | world |"))
        self.assertEqual(self.check()[0], 2)


if __name__ == "__main__":
    unittest.main()
