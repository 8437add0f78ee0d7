#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the installed OpenSHMEM headers from the type tables and the list of functions.

The type tables are in src/capi/openshmem/types.def, the functions in openshmem_functions.py, what is
made of them for type-generic names in openshmem_generics.py, and how sets of types are written in
openshmem_types.py.

  generate_openshmem.py                  write shmem.h, pshmem.h and those of the type-generic names
  generate_openshmem.py --check          fail when one of them is not what would be written
  generate_openshmem.py --list           print the declared functions, one a line
  generate_openshmem.py --redeclare      print C that declares all of them once more (for a test)
  generate_openshmem.py --generics       print C that calls each type-generic name for each type
"""

import argparse
import pathlib
import re
import sys

import openshmem_functions as functions
import openshmem_generics as generics
import openshmem_types as types

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLES = ROOT / "src/capi/openshmem/types.def"
HEADERS = ROOT / "include"


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


def declarations(section, spelled):
    """The lines that declare a section's functions: a macro for each set of types, then the functions without one.

    spelled(prototype) is the prototype with the name to declare.
    """
    by_table = {}
    for function in section.functions:
        # In a macro whose parameters are `name` and `type`; a name may end in its middle.
        places = {function.table: [("##name##", "type")]}
        by_table.setdefault(function.table, []).extend(
            spelled(prototype).replace("##(", "(") + ";" for prototype in expand(function, places))
    single = by_table.pop("", [])
    lines = []
    for table, prototypes in by_table.items():
        lines += [types.macro("MEMSPAN_DECLARE_(name, type, a, b)", prototypes),
                  f"MEMSPAN_{table}_(MEMSPAN_DECLARE_, , )", "#undef MEMSPAN_DECLARE_"]
    return lines + single


def alias_of(prototype):
    # The name is the last word before the bracket; one that is pasted together begins with shmem_.
    return re.sub(r"([\w#]+)\(", r"p\1(", prototype, count=1)


def header_comment(title):
    out = ["/* SPDX-License-Identifier: Apache-2.0", " *"]
    out += [f" * {line}".rstrip() for line in title.strip().splitlines()]
    return out + [
        " *",
        " * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.",
        " */",
    ]


def enclose(title, guard, lines):
    out = header_comment(title) + [f"#ifndef {guard}", f"#define {guard}", ""]
    return "\n".join(out + lines + ["", f"#endif /* {guard} */", ""])


def declare(opening, spelled):
    """The lines that declare all functions by the names that spelled() makes of their prototypes."""
    out = ["/* clang-format off */", opening.strip(), "", "#ifdef __cplusplus", 'extern "C" {', "#endif"]
    for section in functions.SECTIONS:
        out += ["", "/* " + "\n * ".join(section.comment.strip().splitlines()) + " */"]
        out += declarations(section, spelled)
    return out + ["", "#ifdef __cplusplus", "}", "#endif", "/* clang-format on */"]


def all_prototypes(tables):
    for section in functions.SECTIONS:
        for function in section.functions:
            yield from expand(function, tables)


INCLUDE_GENERICS = """
#ifdef __cplusplus
#include <memspan/openshmem_cxx.h>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include <memspan/openshmem_c11.h>
#endif
"""


def render_all(tables):
    plain = declare(functions.OPENING, lambda prototype: prototype)
    profiling = declare(functions.PROFILING_OPENING, alias_of)
    used = {function.table for section in functions.SECTIONS for function in section.functions}
    sets = {name: entries for name, entries in tables.items() if name in used} | generics.sets(tables)
    return {
        HEADERS / "memspan/openshmem_types.h":
            enclose(types.TITLE, "MEMSPAN_OPENSHMEM_TYPES_H", types.render(sets)),
        HEADERS / "openshmem/shmem.h": enclose(functions.TITLE, "MEMSPAN_OPENSHMEM_SHMEM_H",
                                              plain + ["", INCLUDE_GENERICS.strip()]),
        HEADERS / "openshmem/pshmem.h": enclose(functions.PROFILING_TITLE, "MEMSPAN_OPENSHMEM_PSHMEM_H",
                                               profiling),
        HEADERS / "memspan/openshmem_c11.h":
            enclose(generics.C11_TITLE, "MEMSPAN_OPENSHMEM_C11_H", generics.render_c11(tables)),
        HEADERS / "memspan/openshmem_cxx.h":
            enclose(generics.CXX_TITLE, "MEMSPAN_OPENSHMEM_CXX_H", generics.render_cxx(tables)),
    }


def redeclare(tables):
    # In brackets, for some names are macros as well.
    def bracketed(prototype):
        return re.sub(r"(\w+)\(", r"(\1)(", prototype, count=1)

    lines = ["#include <pshmem.h>", "#include <shmem.h>", "", "#ifdef __cplusplus",
             'extern "C" {', "#endif"]
    for prototype in all_prototypes(tables):
        # Without the attribute macros of the header: those need not be repeated.
        plain = prototype.replace("MEMSPAN_NORETURN ", "")
        lines += [bracketed(plain) + ";", bracketed(alias_of(plain)) + ";"]
    lines += ["#ifdef __cplusplus", "}", "#endif"]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--list", action="store_true")
    mode.add_argument("--redeclare", action="store_true")
    mode.add_argument("--generics", action="store_true")
    arguments = parser.parse_args()
    tables = read_tables(TABLES.read_text())
    if arguments.list:
        print("\n".join(functions.name_of(prototype) for prototype in all_prototypes(tables)))
        return 0
    if arguments.redeclare:
        print(redeclare(tables), end="")
        return 0
    if arguments.generics:
        print(generics.calls(tables), end="")
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
