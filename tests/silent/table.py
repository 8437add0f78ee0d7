# SPDX-License-Identifier: Apache-2.0
"""The table of docs/reliability.md of what ends which call: ``table.py FOLDER [--write]`` compares it with what the
programs in that folder say, or writes it."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(HERE, "..", "..", "docs", "reliability.md")
BEGIN, END = "<!-- silent:begin -->\n", "<!-- silent:end -->\n"
FACES = {"openshmem": "OpenSHMEM", "cann": "CANN SHMEM", "trans": "transfers", "bm": "pools", "kv": "KV blocks", "shm": "spaces",
         "group": "groups"}
NEAR = {"at-once": "they do not need it", "soon": "a second at most", "with-peer": "they wait for it", "in-time": "their time-out"}
FAR = {"at-once": "they do not need it", "soon": "a second at most", "in-time": "their time-out", "silence": "2 s at most",
       "lost": "3 s"}


def expected_failures():
    with open(os.path.join(HERE, "far_path.txt")) as file:
        return {tuple(line.split()[::2]) for line in file if line.strip() and not line.startswith("#")}


def table(folder):
    lines = ["| face | calls | it is stopped, on this host | it is silent, on another host |", "|---|---|---|---|"]
    for face, name in FACES.items():
        listed = subprocess.run([os.path.join(folder, f"silent_{face}"), "list"], check=True, capture_output=True, text=True)
        groups = {}
        for call, near, far, *_ in (line.split() for line in listed.stdout.splitlines()):
            text = FAR[far] + ("; not yet so" if (face, call) in expected_failures() else "")
            groups.setdefault((NEAR[near], text), []).append(f"`{call}`")
        lines += [f"| {name} | {', '.join(calls)} | {near} | {far} |" for (near, far), calls in groups.items()]
    return "\n".join(lines) + "\n"


def main(folder, *options):
    with open(PAGE) as file:
        text = file.read()
    before, rest = text.split(BEGIN)
    found, after = rest.split(END)
    wanted = table(folder)
    if "--write" in options:
        with open(PAGE, "w") as file:
            file.write(before + BEGIN + wanted + END + after)
    elif found != wanted:
        sys.exit("docs/reliability.md has another table: python3 tests/silent/table.py FOLDER --write")


main(*sys.argv[1:])
