# SPDX-License-Identifier: Apache-2.0
"""The type-generic names of OpenSHMEM: as C11 selections, as C++ overloads, and as calls for a test.

Both headers apply what they say to the sets of openshmem_types.py, a line for each name.
"""

import dataclasses
import re

import openshmem_functions as functions
import openshmem_types as types

C11_TITLE = """
The type-generic names of OpenSHMEM as C11 selections. Included by <shmem.h>.

shmem_put(dest, ...) is shmem_TYPE_put(dest, ...) for the type that dest points to, with a context
in front shmem_ctx_TYPE_put. An argument of another type does not compile. Units, ownership, threads
and errors are those of the functions chosen, in <shmem.h>.
"""
CXX_TITLE = C11_TITLE.replace("C11 selections", "C++ overloads")


@dataclasses.dataclass
class Generic:
    """One type-generic name, from the entry of the list that makes it."""
    name: str
    parameters: list  # [(type, name)] without the context; TYPE stands for the type
    result: str
    table: str
    types: list  # [(name in the middle, C type)], each C type once
    has_context: bool

    @property
    def stem(self):
        return self.name.removeprefix("shmem_")

    def forms(self):
        """("" or "ctx_", parameters) of the forms without and with a context."""
        yield "", self.parameters
        if self.has_context:
            yield "ctx_", [("shmem_ctx_t ", "ctx"), *self.parameters]


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
            name = functions.name_of(function.prototype.replace("@_", ""))
            if name in functions.NOT_GENERIC:
                continue
            yield Generic(name, parameters_of(function.prototype),
                          function.prototype[:function.prototype.index("shmem_")].strip(),
                          function.table.removesuffix("_TYPES") + "_DISTINCT", distinct_types(tables[function.table]),
                          "CTX" in function.prototype)


def but_long(generic):
    """The same without long, for C++ names that are C functions on longs as well."""
    if generic.name not in functions.ALSO_ON_LONGS:
        return generic
    return dataclasses.replace(generic, table=generic.table + "_BUT_LONG",
                               types=[entry for entry in generic.types if entry[0] != "long"])


def sets(tables):
    """{name: entries} of the sets of types that the two headers apply something to."""
    found = {}
    for generic in generics(tables):
        for form in (generic, but_long(generic)):
            found[form.table] = form.types
    return found


# ---- C11 ---------------------------------------------------------------------------------------

# Selects by the first pointer's type, read or written. The selections of a name with and without a
# context have to be valid both, so each has a case for what does not fit.
C11_OPENING = """
/* Declared so that calling it with arguments is an error; it does not exist. */
void memspan_no_such_type(void);

/* clang-format off */
#define MEMSPAN_FIRST_(...) MEMSPAN_FIRST_OF_(__VA_ARGS__, 0)
#define MEMSPAN_FIRST_OF_(first, ...) first
#define MEMSPAN_SECOND_(...) MEMSPAN_SECOND_OF_(__VA_ARGS__, 0, 0)
#define MEMSPAN_SECOND_OF_(first, second, ...) second

/* By the type that `pointer` points to; what the set does not have does not compile. */
#define MEMSPAN_CASE_(name, type, before, after) \\
  type*: before##name##after, const type*: before##name##after,
#define MEMSPAN_SELECT_(pointer, set, before, after) \\
  _Generic(pointer, set(MEMSPAN_CASE_, before, after) default: memspan_no_such_type)
#define MEMSPAN_BY_FIRST_(set, after, ...) \\
  MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), set, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_BY_SECOND_(set, after, ...) \\
  MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), set, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_WITH_CONTEXT_(set, after, ...) \\
  _Generic(MEMSPAN_FIRST_(__VA_ARGS__), \\
    shmem_ctx_t: MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), set, shmem_ctx_, after), \\
    default: MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), set, shmem_, after))(__VA_ARGS__)
"""


def render_c11(tables):
    out = ["#include <memspan/openshmem_types.h>", "", C11_OPENING.strip(), ""]
    for generic in generics(tables):
        if generic.has_context:
            way = "WITH_CONTEXT"
        else:
            way = "BY_SECOND" if "team" in generic.parameters[0][0] else "BY_FIRST"
        out.append(f"#define {generic.name}(...) "
                   f"MEMSPAN_{way}_(MEMSPAN_{generic.table}_, _{generic.stem}, __VA_ARGS__)")
    out.append("")
    out += [f"#define {name}(...) _Generic(MEMSPAN_FIRST_(__VA_ARGS__), {cases})(__VA_ARGS__)"
            for name, (cases, _) in functions.SPECIAL_GENERICS.items()]
    return out + ["/* clang-format on */"]


# ---- C++ ---------------------------------------------------------------------------------------


def overload(generic):
    """The lines of a macro's body: the overloads of `generic` for one type, which names of the same
    parameters share."""
    lines = []
    for context, parameters in generic.forms():
        declared = ", ".join(c_type.replace("TYPE", "type") + name for c_type, name in parameters)
        passed = ", ".join(name for _, name in parameters)
        result = generic.result.replace("TYPE", "type")
        back = "" if result == "void" else "return "
        lines += [f"inline {result} generic({declared}) {{",
                  f"  {back}shmem_{context}##name##stem({passed});", "}"]
    return tuple(lines)


def render_cxx(tables):
    alike = {}
    for generic in map(but_long, generics(tables)):
        alike.setdefault(overload(generic), []).append(generic)
    out = ["#include <memspan/openshmem_types.h>", "", "/* clang-format off */", 'extern "C++" {', ""]
    for lines, found in alike.items():
        out.append(types.macro("MEMSPAN_OVERLOAD_(name, type, generic, stem)", lines))
        out += [f"MEMSPAN_{generic.table}_(MEMSPAN_OVERLOAD_, {generic.name}, _{generic.stem})" for generic in found]
        out.append("#undef MEMSPAN_OVERLOAD_")
    out += ["", *(overload for _, overload in functions.SPECIAL_GENERICS.values())]
    return out + ["", "}", "/* clang-format on */"]


# ---- a test ------------------------------------------------------------------------------------


def calls(tables):
    """C of a function for each name, type and form, whose parameters are those of the name; never called."""
    lines = ["#include <shmem.h>"]
    for generic in generics(tables):
        for name, c_type in generic.types:
            for context, parameters in generic.forms():
                result = generic.result.replace("TYPE", c_type)
                declared = ", ".join(t.replace("TYPE", c_type) + n for t, n in parameters)
                head = f"{result} call_{context}{name}_{generic.stem}({declared})"
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
