# SPDX-License-Identifier: Apache-2.0
"""The type-generic names of OpenSHMEM: as C11 selections, as C++ overloads, and as calls for a test.

Both headers write each set of types once, as a macro, and each name as one line or two that use it.
"""

import dataclasses
import re

import openshmem_functions as functions

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
                          function.table.removesuffix("_TYPES"), distinct_types(tables[function.table]),
                          "CTX" in function.prototype)


def sets_of_types(found):
    """{name of a set: its types}, one for each set of types that differs."""
    names = {}
    for generic in found:
        names.setdefault(tuple(generic.types), generic.table)
    return {name: list(types) for types, name in names.items()}, names


def macro(head, lines):
    return " \\\n".join([f"#define {head}", *("  " + line for line in lines)])


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

/* By the type that `pointer` points to; what cases(before, after) does not list does not compile. */
#define MEMSPAN_SELECT_(pointer, cases, before, after) \\
  _Generic(pointer, cases(before, after) default: memspan_no_such_type)
#define MEMSPAN_BY_FIRST_(cases, after, ...) \\
  MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), cases, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_BY_SECOND_(cases, after, ...) \\
  MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), cases, shmem_, after)(__VA_ARGS__)
#define MEMSPAN_WITH_CONTEXT_(cases, after, ...) \\
  _Generic(MEMSPAN_FIRST_(__VA_ARGS__), \\
    shmem_ctx_t: MEMSPAN_SELECT_(MEMSPAN_SECOND_(__VA_ARGS__), cases, shmem_ctx_, after), \\
    default: MEMSPAN_SELECT_(MEMSPAN_FIRST_(__VA_ARGS__), cases, shmem_, after))(__VA_ARGS__)

#define MEMSPAN_CASE_(function, type) type*: function, const type*: function,
"""


def render_c11(tables):
    found = list(generics(tables))
    sets, names = sets_of_types(found)
    out = [C11_OPENING.strip()]
    for name, types in sets.items():
        out.append(macro(f"MEMSPAN_{name}_CASES_(before, after)",
                         [f"MEMSPAN_CASE_(before##{entry}##after, {c_type})" for entry, c_type in types]))
    out.append("")
    for generic in found:
        if generic.has_context:
            way = "WITH_CONTEXT"
        else:
            way = "BY_SECOND" if "team" in generic.parameters[0][0] else "BY_FIRST"
        out.append(f"#define {generic.name}(...) MEMSPAN_{way}_(MEMSPAN_{names[tuple(generic.types)]}_CASES_, "
                   f"_{generic.stem}, __VA_ARGS__)")
    out.append("")
    out += [f"#define {name}(...) _Generic(MEMSPAN_FIRST_(__VA_ARGS__), {cases})(__VA_ARGS__)"
            for name, (cases, _) in functions.SPECIAL_GENERICS.items()]
    return out + ["/* clang-format on */"]


# ---- C++ ---------------------------------------------------------------------------------------


def overload(generic):
    """A macro of a name's overloads for one type, used for all of its types."""
    lines = []
    for context, parameters in generic.forms():
        declared = ", ".join(c_type.replace("TYPE", "type") + name for c_type, name in parameters)
        passed = ", ".join(name for _, name in parameters)
        result = generic.result.replace("TYPE", "type")
        back = "" if result == "void" else "return "
        lines += [f"inline {result} {generic.name}({declared}) {{",
                  f"  {back}shmem_{context}##name##_{generic.stem}({passed});", "}"]
    return macro("MEMSPAN_OVERLOAD_(name, type)", lines)


def render_cxx(tables):
    found = [dataclasses.replace(generic, table=generic.table + "_BUT_LONG",
                                 types=[entry for entry in generic.types if entry[0] != "long"])
             if generic.name in functions.ALSO_ON_LONGS else generic for generic in generics(tables)]
    sets, names = sets_of_types(found)
    out = ["/* clang-format off */", 'extern "C++" {', ""]
    for name, types in sets.items():
        out.append(macro(f"MEMSPAN_{name}_SET_(X)", [f"X({entry}, {c_type})" for entry, c_type in types]))
    out.append("")
    for generic in found:
        out += [overload(generic), f"MEMSPAN_{names[tuple(generic.types)]}_SET_(MEMSPAN_OVERLOAD_)",
                "#undef MEMSPAN_OVERLOAD_"]
    out += [overload for _, overload in functions.SPECIAL_GENERICS.values()]
    out += [""] + [f"#undef MEMSPAN_{name}_SET_" for name in sets]
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
