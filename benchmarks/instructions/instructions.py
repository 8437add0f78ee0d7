#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of a call of the data path, which no state of the machine changes.

  instructions.py PROGRAM [--check BUILD] [--record FILE]

PROGRAM is what calls.c becomes. It runs under callgrind (of valgrind); what is printed is the number
of instructions of one call, from its first to its return; of a transfer also those of the C library.
--check fails when one needs more than the budget says; BUILD is the compiler and the kind of the
library's build, as GNU-Release. Exits with 77 where that cannot be said.
"""

import argparse
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import record  # noqa: E402

CALLS = 1000
# On x86-64: what GCC 12 makes of it, and a little room for other versions.
BUDGET = {
    "shmem_long_p": 26,
    "shmem_long_g": 20,
    "shmem_long_put": 40,
    "shmem_long_get": 34,
    "shmem_putmem_nbi": 40,
    "shmem_putmem_signal": 62,
    "shmem_long_atomic_inc": 30,
    "shmem_long_atomic_fetch_add": 30,
    "shmem_long_atomic_fetch": 24,
    "shmem_long_test": 40,
    "shmem_fence": 6,
    "shmem_quiet": 6,
}
# Single transfers of 64 bytes in the library's and in ordinary memory of another process, with all that they call.
TRANSFERS = {"mapped_write": 600, "mapped_read": 600, "ordinary_write": 460, "ordinary_read": 460}


def counts(program):
    """{function: instructions of all its calls}, with what was put in line into it; transfers with what they call."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-line=no",
                   "--compress-strings=no", program, str(CALLS)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if done.returncode != 0:
            sys.exit(f"instructions: {program} under valgrind ended with {done.returncode}:\n{done.stderr}")
        text = out.read_text()
    total = {}
    function = ""
    is_call = False
    for line in text.splitlines():
        if line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            is_call = True
        elif re.match(r"[+*\-\d]", line):
            if not is_call or function in TRANSFERS:  # else what a callee needed
                total[function] = total.get(function, 0) + int(line.split()[1])
            is_call = False
    return total


def cannot(why):
    print(f"instructions: {why}")
    return 77


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--check", metavar="BUILD")
    record.option(parser)
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        return cannot("valgrind is missing (scripts/install_deps.sh --dev)")
    if arguments.check and (platform.machine() != "x86_64" or not arguments.check.startswith("GNU-Rel")):
        return cannot(f"there is no budget for {arguments.check} on {platform.machine()}")
    total = counts(arguments.program)
    is_over, rows = False, []
    for name, budget in (BUDGET | TRANSFERS).items():
        if name not in total:
            sys.exit(f"instructions: {name} was not seen")
        each = total[name] / CALLS
        over = arguments.check and each > budget
        is_over = is_over or over
        rows.append(record.Row(name, "", ours=each, target=budget, of="ours"))
        print(f"{name:30} {each:6.1f}{f'  more than {budget}' if over else ''}")
    if arguments.record:
        command = "python3 benchmarks/instructions/instructions.py build/benchmarks/instructions/instructions_calls"
        versions = {"memspan": (record.ROOT / "VERSION").read_text().strip()}
        record.add(arguments.record, "instructions", record.table("instructions of a call", command, None, versions, rows))
    return 1 if is_over else 0


if __name__ == "__main__":
    sys.exit(main())
