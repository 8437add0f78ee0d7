# SPDX-License-Identifier: Apache-2.0
"""Whether exported.txt says of each exported function what stands for it: ``exported.py LIBRARY FOLDER``, the folder of
the faces' programs."""

import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = (r"(?:float|double|longdouble|char|schar|short|int|long|longlong|uchar|ushort|uint|ulong|ulonglong|u?int(?:8|16|32|64)|size"
         r"|ptrdiff|complex[fd]|half|bfloat16|8|16|32|64|128|mem)")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exported(library):
    """Each function's own name, and the one that the list has for it."""
    for line in output_of("nm", "-D", "--defined-only", library).splitlines():
        _, kind, symbol = line.split()
        name = symbol.partition("@")[0]
        if kind in "TWi" and not name.startswith("_Z"):
            yield name, re.sub(r"^p(?=_?(?:sh|start|my_pe|num_pes))", "", name).replace("shmem_ctx_", "shmem_")


def entries():
    with open(os.path.join(HERE, "exported.txt")) as file:
        text = re.sub(r"^#.*\n", "", file.read(), flags=re.MULTILINE)
    for entry in re.split(r"\n(?=\S)", text.strip()):
        what, _, patterns = entry.partition(": ")
        what = what.removesuffix(":").strip()
        for pattern in patterns.split():
            yield what, pattern, re.compile(pattern.replace("<T>", TYPES))


def main(library, folder):
    faces = {face for face in os.listdir(folder) if face.startswith("silent_")}
    calls = {f"{face.removeprefix('silent_')} {line.split()[0]}"
             for face in faces for line in output_of(os.path.join(folder, face), "list").splitlines()}
    functions, wrong = dict(exported(library)), []
    listed = list(entries())
    for what, pattern, expression in listed:
        place, _, rest = what.partition(" ")
        if place == "elsewhere" and not os.path.exists(os.path.join(HERE, "..", "..", rest)):
            wrong.append(f"{what}: there is no such file")
        if place not in ("elsewhere", "alone") and what not in calls:
            wrong.append(f"{what}: there is no such call")
        if not any(expression.fullmatch(name) for name in functions.values()):
            wrong.append(f"{what}: no function is {pattern}")
    for function, name in functions.items():
        found = {what for what, _, expression in listed if expression.fullmatch(name)}
        if len(found) != 1:
            wrong.append(f"{function} is in {' and '.join(sorted(found)) or 'no line of exported.txt'}")
    print(f"{len(functions)} functions")
    sys.exit("\n".join(wrong) or None)


main(*sys.argv[1:])
