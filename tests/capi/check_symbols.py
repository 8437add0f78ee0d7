#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each declared shmem_X is exported weak, with a strong pshmem_X at the same address.

  check_symbols.py LIBRARY GENERATOR
"""

import subprocess
import sys


def exported(library):
    """{name: (address, kind)} of the dynamic symbols."""
    lines = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    return {name: (address, kind) for address, kind, name in (line.split() for line in lines)}


def problems_of(name, symbols):
    weak, strong = symbols.get(name), symbols.get("p" + name)
    if weak is None or strong is None:
        return [f"{name}: not exported" if weak is None else f"p{name}: not exported"]
    found = []
    if weak[1] != "W":
        found.append(f"{name} is not weak ({weak[1]})")
    if strong[1] != "T":
        found.append(f"p{name} is not strong ({strong[1]})")
    if weak[0] != strong[0]:
        found.append(f"{name} and p{name} are at different addresses")
    return found


def main():
    library, generator = sys.argv[1:]
    declared = subprocess.run([sys.executable, generator, "--list"], check=True, capture_output=True,
                              text=True).stdout.split()
    symbols = exported(library)
    problems = [problem for name in declared for problem in problems_of(name, symbols)]
    aliases = {name for name in symbols if name.startswith("pshmem_")}
    problems += [f"{name} is exported but not declared" for name in sorted(aliases - {"p" + d for d in declared})]
    print("\n".join(problems))
    print(f"{len(declared)} functions declared, {len(problems)} problems")
    return 1 if problems or not declared else 0


if __name__ == "__main__":
    sys.exit(main())
