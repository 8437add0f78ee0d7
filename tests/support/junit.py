#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""junit.py REPORT FOLDER: a line "KIND<tab>NAME<tab>FILE" for each test of a JUnit report by ctest or
pytest. KIND is passed, failed, skipped, unsteady or a sentence about a wrong skip; FILE, in FOLDER, has the test's output.

The reason of a skip begins with "needs=NAME", of something that MEMSPAN_TEST_LACKS names (machine.py), or with "does not
apply:". Any other is wrong, also that of one test of several within a program that passed.

A test that failed is unsteady when REPORT.again, of a second run of what failed, has it as passed,
unless a sanitizer found something in the first."""

import os
import pathlib
import re
import sys
import xml.etree.ElementTree as tree

# What ran alone in the second run, and did what it should. A sanitizer's finding needs no second one.
report = pathlib.Path(sys.argv[1])
again = report.with_name(report.name + ".again")
sanitizer = re.compile("(Address|Leak|Thread|UndefinedBehavior)Sanitizer|: runtime error: ")
steadied = set()
if again.exists():
    for case in tree.parse(again).getroot().iter("testcase"):
        if case.get("status") in ("run", None) and not any(case.find(n) is not None for n in ("failure", "error", "skipped")):
            steadied.add((case.get("classname"), case.get("name")))

lacking = os.environ.get("MEMSPAN_TEST_LACKS", "").split()


def wrong_skip(text, is_skipped):
    """What is wrong with the skips that the text of a test reports; None if nothing is."""
    for need in re.findall(r"\bneeds=(\w+)", text):
        if need not in lacking:
            return f"it was skipped for want of {need}, which this machine has"
    # GoogleTest prints "FILE:LINE: Skipped", and the reason in the next line; oshrun "[RANK] " before each.
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if line.endswith(": Skipped"):
            rank = re.match(r"\[\d+\] |", line)[0]
            reason = next((other[len(rank):] for other in lines[at + 1:] if other.startswith(rank)), "")
            if not re.match("needs=|does not apply:", reason):
                return f"a part of it was skipped for a reason of its own: {reason}"
    if is_skipped and not re.search(r"\bneeds=|does not apply:", text):
        return "it was skipped without a reason that the probe confirms"
    return None


# ctest writes the status of each test: run, fail, notrun (skipped or not found) or disabled.
# pytest writes none, and what it has to say of a failure stands there.
for case in tree.parse(report).getroot().iter("testcase"):
    kind = {"run": "passed", "fail": "failed", None: "passed"}.get(case.get("status"), "skipped")
    skip = case.find("skipped")
    if skip is not None:
        kind = "skipped"
        if "Unable to find executable" in (skip.get("message") or ""):
            kind = "failed"
    wrong = [node for node in case if node.tag in ("failure", "error")]
    if wrong:
        kind = "failed"
    texts = [case.findtext("system-out") or "", *(node.text or "" for node in wrong)]
    output = pathlib.Path(sys.argv[2], "output of " + case.get("name").replace("/", "."))
    output.write_text("\n".join(texts).rstrip() + "\n")
    if kind == "failed" and (case.get("classname"), case.get("name")) in steadied:
        kind = "failed" if sanitizer.search(output.read_text()) else "unsteady"
    if kind in ("passed", "skipped"):
        message = (skip.get("message") or "") + (skip.text or "") if skip is not None else ""
        kind = wrong_skip("\n".join([*texts, message]), kind == "skipped") or kind
    print(kind, case.get("name"), output, sep="\t")
