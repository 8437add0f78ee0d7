# SPDX-License-Identifier: Apache-2.0
"""The sets of types as macros that other headers apply to each of their types.

A set is written as a sum of the groups of types that always come together, so that no type stands twice.
"""

TITLE = """
The types of OpenSHMEM as sets, for the headers that say the same of each: MEMSPAN_RMA_TYPES_(X, a, b) is
X(float, float, a, b) X(double, double, a, b) and so on, the type's middle name first. Declares nothing.
"""


def groups_of(sets):
    """[(entries, the names of the sets that have them)], each entry once."""
    owners = {}
    for name, entries in sets.items():
        for entry in entries:
            owners.setdefault(entry, []).append(name)
    groups = {}
    for entry, names in owners.items():
        groups.setdefault(tuple(names), []).append(entry)
    return [(entries, names) for names, entries in groups.items()]


def macro(head, lines):
    return " \\\n".join([f"#define {head}", *("  " + line for line in lines)])


def render(sets):
    out = []
    groups = groups_of(sets)
    for i, (entries, _) in enumerate(groups):
        out.append(macro(f"MEMSPAN_TYPES_{i}_(X, a, b)", [f"X({name}, {c_type}, a, b)" for name, c_type in entries]))
    out.append("")
    for name in sets:
        parts = [f"MEMSPAN_TYPES_{i}_(X, a, b)" for i, (_, names) in enumerate(groups) if name in names]
        lines = [" ".join(parts[i:i + 3]) for i in range(0, len(parts), 3)]
        out.append(macro(f"MEMSPAN_{name}_(X, a, b)", lines))
    return ["/* clang-format off */", *out, "/* clang-format on */"]
