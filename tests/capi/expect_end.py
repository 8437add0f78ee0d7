#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a program that has to end with a code and at most one line on stderr that matches.

  expect_end.py CODE PATTERN PROGRAM ARGUMENTS...
"""

import re
import subprocess
import sys


def main():
    code, pattern, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=50)
    line = ended.stderr.rstrip("\n")
    print(f"code {ended.returncode}, stderr: {ended.stderr}")
    if ended.returncode != code:
        print(f"expected code {code}")
        return 1
    if "\n" in line or not re.search(pattern, line):
        print(f"expected one line that matches {pattern!r}")
        return 1
    # What was printed before must not be lost.
    if ended.stdout != "started\n":
        print(f"stdout is {ended.stdout!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
