#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the installed OpenSHMEM headers from the type tables and the list of functions.

The type tables are in src/capi/openshmem/types.def, the functions in openshmem_functions.py.

  generate_openshmem.py                  write include/openshmem/shmem.h and pshmem.h
  generate_openshmem.py --check          fail when one of them is not what would be written
  generate_openshmem.py --list           print the declared functions, one a line
  generate_openshmem.py --redeclare      print C that declares all of them once more (for a test)
"""

import argparse
import pathlib
import re
import sys

import openshmem_functions as functions

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT / "src/capi/openshmem/types.def"
HEADERS = ROOT / "include/openshmem"


def read_tables(text):
    """{table: [(name, type), ...]} with tables that stand inside tables expanded."""
    text = re.sub(r"//[^\n]*", "", text).replace("\\\n", " ")
    tables = {}
    for table, body in re.findall(r"#define MEMSPAN_(\w+)\(X\)([^\n]*)", text):
        entries = []
        for inner, name, c_type in re.findall(r"MEMSPAN_(\w+)\(X\)|X\((\w+), ([^)]+)\)", body):
            entries += tables[inner] if inner else [(name, c_type)]
        tables[table] = entries
    return tables


def expand(function, tables):
    """The prototypes of one entry of the list, without the final semicolon."""
    prototype = function.prototype
    places = tables[function.table] if function.table else [("", "")]
    contexts = ["", "ctx_"] if "CTX" in prototype else [""]
    for name, c_type in places:
        for context in contexts:
            # `@` stands for the middle of the name, CTX for the context parameter.
            line = prototype.replace("(CTX", "(shmem_ctx_t ctx, " if context else "(")
            line = line.replace("shmem_", "shmem_" + context, 1) if context else line
            yield line.replace("@", name).replace("TYPE", c_type)


def name_of(prototype):
    return re.search(r"(\w+)\(", prototype).group(1)


def twin_of(prototype):
    name = name_of(prototype)
    return prototype.replace(name + "(", "p" + name + "(", 1)


def render(title, guard, opening, tables, change, after=""):
    out = [f"/* SPDX-License-Identifier: Apache-2.0", " *"]
    out += [f" * {line}".rstrip() for line in title.strip().splitlines()]
    out += [
        " *",
        " * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.",
        " */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        opening.strip(),
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    for section in functions.SECTIONS:
        out += ["", "/* " + "\n * ".join(section.comment.strip().splitlines()) + " */"]
        for function in section.functions:
            out += [change(prototype) + ";" for prototype in expand(function, tables)]
    out += ["", "#ifdef __cplusplus", "}", "#endif"]
    if after:
        out += ["", after.strip()]
    out += ["", f"#endif /* {guard} */", ""]
    return "\n".join(out)


def all_prototypes(tables):
    for section in functions.SECTIONS:
        for function in section.functions:
            yield from expand(function, tables)


def render_all(tables):
    return {
        HEADERS / "shmem.h": render(functions.TITLE, "MEMSPAN_OPENSHMEM_SHMEM_H",
                                    functions.OPENING, tables, lambda line: line),
        HEADERS / "pshmem.h": render(functions.PROFILING_TITLE, "MEMSPAN_OPENSHMEM_PSHMEM_H",
                                     functions.PROFILING_OPENING, tables, twin_of),
    }


def redeclare(tables):
    lines = ["#include <pshmem.h>", "#include <shmem.h>", "", "#ifdef __cplusplus",
             'extern "C" {', "#endif"]
    for prototype in all_prototypes(tables):
        # Without the attribute macros of the header: those need not be repeated.
        plain = prototype.replace("MEMSPAN_NORETURN ", "")
        lines += [plain + ";", twin_of(plain) + ";"]
    lines += ["#ifdef __cplusplus", "}", "#endif"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--list", action="store_true")
    mode.add_argument("--redeclare", action="store_true")
    arguments = parser.parse_args()
    tables = read_tables(TABLES.read_text())
    if arguments.list:
        print("\n".join(name_of(prototype) for prototype in all_prototypes(tables)))
        return 0
    if arguments.redeclare:
        print(redeclare(tables), end="")
        return 0
    stale = [(path, text) for path, text in render_all(tables).items()
             if not path.exists() or path.read_text() != text]
    for path, text in stale:
        if arguments.check:
            print(f"{path.relative_to(ROOT)} is stale: run tools/dev/generate_openshmem.py",
                  file=sys.stderr)
        else:
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
    return 1 if arguments.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
