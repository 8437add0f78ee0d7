# SPDX-License-Identifier: Apache-2.0
"""Every variable of the environment that memspan reads stands in docs/running.md, and no other one does."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A text that is nothing but a name: what is read, or a constant that holds its name.
NAME = re.compile(r"""["']((?:MEMSPAN|SHMEM|SMA|ASCEND_MF|SYMMETRIC_MEMORY)_[A-Z_]+)["']""")
WRAPPER = re.compile(r"^memspan_add_wrapper\(\S+ (MEMSPAN_\w+) ", re.M)
# Read, and for nobody to set.
INTERNAL = {"MEMSPAN_LAUNCH"}  # oshrun's descriptors for its processes
# Not read any more: removed_variables() warns of them.
REMOVED = set(re.findall(r'\{"(MEMSPAN_[A-Z_]+)", "', (ROOT / "src/core/environment.cc").read_text(encoding="utf-8")))
MOST_OF_OURS = 26  # that users may meet, besides those for tests and measurements
NO_VARIABLES = {"python/shmem/names.py"}  # values of init_status()


def are_read() -> dict[str, str]:
    """Variable -> a file that reads it."""
    found = {}
    for top in ("src", "tools", "python"):
        for path in sorted((ROOT / top).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix not in (".cc", ".h", ".py") or name.startswith(("tools/dev/", "tools/site/")) or name in NO_VARIABLES:
                continue
            code = re.sub(r"^\s*//.*", "", path.read_text(encoding="utf-8"), flags=re.M)
            found.update((variable, name) for variable in NAME.findall(code) if variable not in REMOVED)
    install = "cmake/MemspanInstall.cmake"
    found.update((variable, install) for variable in WRAPPER.findall((ROOT / install).read_text(encoding="utf-8")))
    return found


def are_told(end: str = "\n## ") -> set[str]:
    """Of the first column of the tables under "Environment"."""
    page = (ROOT / "docs/running.md").read_text(encoding="utf-8")
    section = page.split("\n## Environment\n")[1].split(end)[0]
    return {name for row in re.findall(r"^\|([^|]*)\|", section, re.M) for name in re.findall(r"`(\w+)`", row)}


class Variables(unittest.TestCase):
    def test_each_is_told(self):
        read, told = are_read(), are_told()
        self.assertGreater(len(read), 40)
        for known in ("MEMSPAN_NET", "SHMEM_SYMMETRIC_SIZE", "MEMSPAN_TORCH_BUILD_DIR", "MEMSPAN_CXX"):
            self.assertIn(known, read)
        self.assertEqual([f"{name}: read by {path}" for name, path in read.items() if name not in told | INTERNAL], [])

    def test_no_other_one_is_told(self):
        self.assertEqual(sorted(are_told() - set(are_read())), [])

    def test_users_meet_few(self):
        ours = {name for name in are_told("\n### For tests") if name.startswith("MEMSPAN_")}
        self.assertNotIn("MEMSPAN_FAULTS", ours)
        self.assertLessEqual(len(ours), MOST_OF_OURS, sorted(ours))

    def test_removed_ones_are_listed(self):
        self.assertIn("MEMSPAN_POPULATE", REMOVED)
        self.assertEqual(REMOVED & set(are_read()), set())

    def test_what_is_internal_is_read(self):
        self.assertLessEqual(INTERNAL, set(are_read()))


if __name__ == "__main__":
    unittest.main()
