# SPDX-License-Identifier: Apache-2.0
"""The tables for who comes from another library (docs/port/) name nothing that memspan does not have."""

import ast
import pathlib
import re
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
C_NAME = re.compile(r"^(?:shmem|pshmem|aclshmem|smem|memspan)x?_\w+$|^(?:start_pes|shmalloc)$|^(?:SHMEM|ACLSHMEM|SMEMB?)_\w+$")
PACKAGES = ("memspan", "mf_smem", "memfabric_hybrid", "mf_adapter", "shmem")


def names_of_c() -> set[str]:
    """All that the headers declare or define, with what their macros make."""
    text = "".join(f'#include "{name}"\n' for name in ("shmem.h", "shmemx.h"))
    others = '#include "aclshmem.h"\n' + "".join(
        f"#include <{path.relative_to(ROOT / 'include').as_posix()}>\n"
        for folder in ("smem/host", "memspan")
        for path in sorted((ROOT / "include" / folder).glob("*.h"))
        if not re.search(r"kernel|launch|openshmem_|space_calls", path.name)
    )
    found: set[str] = set()
    for source in (text, others):
        for options in (["-P"], ["-dM"]):
            folders = ["-I", ROOT / "include", "-I", ROOT / "include/openshmem"]
            done = subprocess.run(["cc", "-E", *options, *folders, "-x", "c", "-"], input=source, text=True, capture_output=True, check=True)
            found.update(re.findall(r"\b[A-Za-z_]\w+", done.stdout))
    return found


def names_of_kernels() -> set[str]:
    text = "".join((ROOT / "include/memspan" / name).read_text() for name in ("kernel.h", "launch.h", "kernel_types.h"))
    return set(re.findall(r"\b(\w+)\(", re.sub(r"//[^\n]*", "", text)))


def names_of_module(module: str) -> set[str] | None:
    """What a module has, classes with their members; None where it is none."""
    path = ROOT / "python" / pathlib.Path(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    if not file.is_file():
        return None
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            names |= names_of_module(node.module or "") or set()
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            names.add(node.name)
            names.update(f"{node.name}.{m.name}" for m in node.body if isinstance(m, ast.FunctionDef))
    return names


def is_of_python(name: str) -> bool:
    words = name.split(".")
    for cut in range(len(words), 0, -1):
        names = names_of_module(".".join(words[:cut]))
        if names is not None:
            return cut == len(words) or ".".join(words[cut:]) in names
    return False


def tables():
    """(page, name) of all names in the column `memspan`."""
    for page in sorted((ROOT / "docs/port").glob("*.md")):
        for row in re.findall(r"^\|(?!---)(.*)\|$", page.read_text(), re.M):
            cells = re.split(r"(?<!\\)\|", row)
            for name in re.findall(r"`([^`]+)`", cells[1]):
                yield page.name, name


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.c, cls.kernels = names_of_c(), names_of_kernels()
        folders = ("src", "python", "tools")
        files = [path for top in folders for path in (ROOT / top).rglob("*") if path.suffix in (".cc", ".h", ".py")]
        cls.variables = set(re.findall(r"\b(?:MEMSPAN|SHMEM)_[A-Z_]+\b", "".join(path.read_text() for path in files)))
        cls.options = (ROOT / "docs/man/oshrun.1.in").read_text().replace("\\-", "-")
        cls.programs = {path.name.removesuffix(".1.in") for path in (ROOT / "docs/man").glob("*.1.in")} | {"oshc++"}

    def is_there(self, name: str) -> bool:
        if name.startswith("memspan::kernel::"):
            return name.removeprefix("memspan::kernel::") in self.kernels
        if name == "memspan::launch":
            return "launch" in self.kernels
        if name.startswith("<"):
            return any((ROOT / folder / name[1:-1]).is_file() for folder in ("include", "include/openshmem"))
        if name.startswith("oshrun -"):
            return name.split()[1] in self.options
        if name.startswith("-l"):
            return f"{name[2:]}" in (ROOT / "cmake/MemspanInstall.cmake").read_text()
        if name in self.programs or name in self.variables:
            return True
        if C_NAME.match(name):
            return name in self.c
        return name.split(".")[0] in PACKAGES and is_of_python(name)

    def test_all_are_there(self):
        found = list(tables())
        self.assertGreater(len(found), 150)
        self.assertEqual([f"{page}: {name}" for page, name in found if not self.is_there(name)], [])

    def test_what_is_not_there_is_found_out(self):
        for name in ("shmem_long_putt", "memspan::kernel::no", "<smem/no.h>", "memspan.kv_pool.KvPool.no", "oshrun --no", "MEMSPAN_NO_SUCH", "oshrum", "-lno_such"):
            self.assertFalse(self.is_there(name), name)


if __name__ == "__main__":
    unittest.main()
