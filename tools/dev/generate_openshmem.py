#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the installed OpenSHMEM headers from the type tables and the list of functions.

The type tables are in src/capi/openshmem/types.def, the functions in openshmem_functions.py.

  generate_openshmem.py                  write shmem.h, pshmem.h and openshmem_generics.h
  generate_openshmem.py --check          fail when one of them is not what would be written
  generate_openshmem.py --list           print the declared functions, one a line
  generate_openshmem.py --redeclare      print C that declares all of them once more (for a test)
  generate_openshmem.py --generics       print C that calls each type-generic name for each type
"""

import argparse
import dataclasses
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


# ---- type-generic names ------------------------------------------------------------------------


@dataclasses.dataclass
class Generic:
    """One type-generic name, from the entries of the list that make it."""
    name: str
    parameters: list  # [(type, name)] without the context; TYPE stands for the type
    result: str
    types: list  # [(name in the middle, C type)], each C type once
    has_context: bool

    @property
    def stem(self):
        return self.name.removeprefix("shmem_")


def parameters_of(prototype):
    text = prototype[prototype.index("(") + 1:prototype.rindex(")")].replace("CTX", "")
    return [re.fullmatch(r"(.*?)(\w+)", part.strip()).groups() for part in text.split(",")]


def distinct_types(table):
    """The entries of a table by distinct C type; an alias (int8) serves where the type's own name is not there."""
    by_name = dict(table)
    chosen = []
    for name in functions.DISTINCT:
        used = name if name in by_name else functions.STANDS_FOR.get(name)
        if used in by_name:
            chosen.append((used, by_name[used]))
    return chosen


def generics(tables):
    for section in functions.SECTIONS:
        for function in section.functions:
            if not function.table or "TYPE" not in function.prototype or "to_all" in function.prototype:
                continue
            name = name_of(function.prototype.replace("@_", ""))
            if name in functions.NOT_GENERIC:
                continue
            yield Generic(name, parameters_of(function.prototype),
                          function.prototype[:function.prototype.index("shmem_")].strip(),
                          distinct_types(tables[function.table]), "CTX" in function.prototype)


def render_c11(generic):
    """Selects by the first pointer's type, read or written; the other selections of a name with and
    without a context have to be valid too, so each has a case for what does not fit."""
    def cases(prefix):
        return [f"MEMSPAN_CASE_({prefix}{name}_{generic.stem}, {c_type})" for name, c_type in generic.types]

    def select(argument, prefix):
        chosen = cases(prefix)
        lines = [", ".join(chosen[i:i + 2]) for i in range(0, len(chosen), 2)]
        return f"_Generic({argument}, " + ", \\\n    ".join(lines + ["default: memspan_no_such_type"]) + ")"

    if generic.has_context:
        return (f"#define {generic.name}(...) \\\n"
                f"  _Generic(MEMSPAN_FIRST_(__VA_ARGS__), shmem_ctx_t: \\\n"
                f"    {select('MEMSPAN_SECOND_(__VA_ARGS__)', 'shmem_ctx_')}, default: \\\n"
                f"    {select('MEMSPAN_FIRST_(__VA_ARGS__)', 'shmem_')})(__VA_ARGS__)")
    place = "SECOND" if "team" in generic.parameters[0][0] else "FIRST"
    return (f"#define {generic.name}(...) \\\n"
            f"  {select(f'MEMSPAN_{place}_(__VA_ARGS__)', 'shmem_')}(__VA_ARGS__)")


def render_cxx(generic):
    lines = []
    for name, c_type in generic.types:
        if generic.name in functions.ALSO_ON_LONGS and name == "long":
            continue
        for context in (["", "ctx_"] if generic.has_context else [""]):
            parameters = [(t.replace("TYPE", c_type), n) for t, n in generic.parameters]
            if context:
                parameters.insert(0, ("shmem_ctx_t ", "ctx"))
            declared = ", ".join(t + n for t, n in parameters)
            passed = ", ".join(n for _, n in parameters)
            result = generic.result.replace("TYPE", c_type)
            back = "" if result == "void" else "return "
            lines.append(f"inline {result} {generic.name}({declared}) {{ "
                         f"{back}shmem_{context}{name}_{generic.stem}({passed}); }}")
    return "\n".join(lines)


def render_generics(tables):
    found = list(generics(tables))
    out = header_comment(functions.GENERICS_TITLE)
    out += ["#ifndef MEMSPAN_OPENSHMEM_GENERICS_H", "#define MEMSPAN_OPENSHMEM_GENERICS_H", "",
            "#ifdef __cplusplus", 'extern "C++" {']
    out += [render_cxx(generic) for generic in found]
    out += [overload for _, overload in functions.SPECIAL_GENERICS.values()]
    out += ["}", "#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L",
            "/* Declared so that calling it with arguments is an error; it does not exist. */",
            "void memspan_no_such_type(void);",
            "#define MEMSPAN_FIRST_(...) MEMSPAN_FIRST_OF_(__VA_ARGS__, 0)",
            "#define MEMSPAN_FIRST_OF_(first, ...) first",
            "#define MEMSPAN_SECOND_(...) MEMSPAN_SECOND_OF_(__VA_ARGS__, 0, 0)",
            "#define MEMSPAN_SECOND_OF_(first, second, ...) second",
            "/* clang-format off */",
            "#define MEMSPAN_CASE_(function, type) type*: function, const type*: function"]
    out += [render_c11(generic) for generic in found]
    out += [f"#define {name}(...) \\\n  _Generic(MEMSPAN_FIRST_(__VA_ARGS__), {cases})(__VA_ARGS__)"
            for name, (cases, _) in functions.SPECIAL_GENERICS.items()]
    out += ["/* clang-format on */", "#endif", "", "#endif /* MEMSPAN_OPENSHMEM_GENERICS_H */", ""]
    return "\n".join(out)


def twin_of(prototype):
    name = name_of(prototype)
    return prototype.replace(name + "(", "p" + name + "(", 1)


def header_comment(title):
    out = ["/* SPDX-License-Identifier: Apache-2.0", " *"]
    out += [f" * {line}".rstrip() for line in title.strip().splitlines()]
    return out + [
        " *",
        " * Written by tools/dev/generate_openshmem.py; change that or types.def, not this file.",
        " */",
    ]


def render(title, guard, opening, tables, change, after=""):
    out = header_comment(title)
    out += [
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
                                    functions.OPENING, tables, lambda line: line,
                                    '#include <memspan/openshmem_generics.h>'),
        HEADERS / "pshmem.h": render(functions.PROFILING_TITLE, "MEMSPAN_OPENSHMEM_PSHMEM_H",
                                     functions.PROFILING_OPENING, tables, twin_of),
        ROOT / "include/memspan/openshmem_generics.h": render_generics(tables),
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
        lines += [bracketed(plain) + ";", bracketed(twin_of(plain)) + ";"]
    lines += ["#ifdef __cplusplus", "}", "#endif"]
    return "\n".join(lines) + "\n"


def call_generics(tables):
    """A function for each name, type and form, whose parameters are those of the name; never called."""
    lines = ["#include <shmem.h>"]
    for generic in generics(tables):
        for name, c_type in generic.types:
            for context in (["", "ctx_"] if generic.has_context else [""]):
                parameters = [(t.replace("TYPE", c_type), n) for t, n in generic.parameters]
                if context:
                    parameters.insert(0, ("shmem_ctx_t ", "ctx"))
                result = generic.result.replace("TYPE", c_type)
                head = (f"{result} call_{context}{name}_{generic.stem}"
                        f"({', '.join(t + n for t, n in parameters)})")
                call = f"{generic.name}({', '.join(n for _, n in parameters)})"
                lines += [head + ";", f"{head} {{ {'' if result == 'void' else 'return '}{call}; }}"]
    lines += ["int call_sync(void);",
              "int call_sync(void) { return shmem_sync(SHMEM_TEAM_WORLD); }",
              "void call_set_sync(long* words);",
              "void call_set_sync(long* words) { shmem_sync(0, 0, 1, words); }"]
    for verb in ("add", "set"):
        lines += [f"void call_signal_{verb}(uint64_t* word);",
                  f"void call_signal_{verb}(uint64_t* word) {{",
                  f"  shmem_signal_{verb}(word, 1, 0);",
                  f"  shmem_signal_{verb}(SHMEM_CTX_DEFAULT, word, 1, 0);", "}"]
    lines += ["int call_arrays(const short* from, short* to);",
              "int call_arrays(const short* from, short* to) {",
              "  static double numbers[4];",
              "  shmem_put(numbers, numbers + 2, 2, 0);",
              "  shmem_p(to, shmem_g(from, 0), 0);",
              "  return shmem_broadcast(SHMEM_TEAM_WORLD, numbers, numbers + 2, 2, 0);", "}"]
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
        print("\n".join(name_of(prototype) for prototype in all_prototypes(tables)))
        return 0
    if arguments.redeclare:
        print(redeclare(tables), end="")
        return 0
    if arguments.generics:
        print(call_generics(tables), end="")
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
