#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that the module table of src/README.md does not allow, and on a namespace of another module.

    check_layers.py [ROOT]

Prints one line per fault, `file:line: ...`, and returns 1; returns 2 when the table itself
is wrong (a module without a row, a row that depends on a later one).
"""
import pathlib
import re
import sys

ROW = re.compile(r"^\|\s*([a-z_]+)\s*\|\s*([a-z_, ]*?)\s*\|")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
NAMESPACE = re.compile(r"^namespace memspan(?:::((?:inline )?[a-z_]+))? \{")
SOURCES = {".h", ".c", ".cc", ".cpp", ".hpp", ".cu", ".cuh", ".inc"}
# Users' points of view: they see what is installed and no module.
OUTSIDE = ("include", "examples", "benchmarks", "python", "torch")
INSIDE = ("benchmarks/links", "benchmarks/reductions")  # programs that measure a module
TOP = "capi"


class TableError(Exception):
    """The table contradicts itself or the tree."""


def read_table(readme):
    """Module -> set of modules it may include, from the table's rows in order."""
    table = {}
    for line in readme.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        if not match or match.group(1) == "module":
            continue
        module = match.group(1)
        allowed = {name.strip() for name in match.group(2).split(",") if name.strip()}
        above = allowed - table.keys()
        if above:
            raise TableError(f"{readme}: {module} depends on {', '.join(sorted(above))}, which is not above it")
        table[module] = allowed
    if not table:
        raise TableError(f"{readme}: there is no table of modules")
    return table


def check_tree(source, table):
    for entry in sorted(source.iterdir()):
        is_module = entry.is_dir() and any(path.suffix in SOURCES for path in entry.rglob("*"))
        if is_module and entry.name not in table:
            raise TableError(f"{entry}: the table in {source / 'README.md'} has no row for this module")


def sources_below(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())


def includes_of(path):
    """(line number, quote, path) of each include."""
    text = path.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def namespaces_of(path):
    """(line number, what follows memspan:: or None) of each namespace that the file opens, but those of forward declarations."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        match = NAMESPACE.match(line)
        if match and not re.match(r"(class|struct) \w+;$", lines[number] if number < len(lines) else ""):
            yield number, match.group(1)


def faults(root, table):
    faces = {entry.name for entry in (root / "include").iterdir() if entry.is_dir()} - {"memspan"} \
        if (root / "include").is_dir() else set()
    for module, allowed in table.items():
        if not (root / "src" / module).is_dir():
            continue
        for path in sources_below(root / "src" / module):
            for line, name in namespaces_of(path):
                folders = {f"inline {module}", *path.relative_to(root / "src" / module).parts} if module != TOP else {TOP}
                if name not in folders:
                    yield f"{path.relative_to(root)}:{line}: write \"namespace memspan::inline {module}\""
            for line, quote, target in includes_of(path):
                head = target.split("/")[0] if "/" in target else ""
                where = f"{path.relative_to(root)}:{line}"
                if quote == '"' and target.startswith("."):
                    yield f"{where}: \"{target}\" is relative; includes are written from src/"
                elif head in table and head != module and head not in allowed:
                    yield f"{where}: {module} may not include \"{target}\" (module {head})"
                elif head in faces and head not in table and module != TOP:
                    yield f"{where}: only {TOP} includes the installed header \"{target}\""
    for folder in OUTSIDE:
        if not (root / folder).is_dir():
            continue
        for path in sources_below(root / folder):
            if any(path.is_relative_to(root / inside) for inside in INSIDE):
                continue
            for line, quote, target in includes_of(path):
                if quote == '"' and target.split("/")[0] in table and (root / "src" / target).exists():
                    yield f"{path.relative_to(root)}:{line}: {folder}/ sees installed headers only, not \"{target}\""


def main(arguments):
    root = pathlib.Path(arguments[1] if len(arguments) > 1 else pathlib.Path(__file__).parents[2]).resolve()
    try:
        table = read_table(root / "src" / "README.md")
        check_tree(root / "src", table)
    except (TableError, OSError) as error:
        print(f"check_layers: {error}", file=sys.stderr)
        return 2
    found = list(faults(root, table))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
