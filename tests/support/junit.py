#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""junit.py REPORT FOLDER: a line "KIND<tab>NAME<tab>FILE" for each test of a JUnit report by ctest or
pytest. KIND is passed, failed, skipped or unsteady; FILE, in FOLDER, has what the test printed.

A test that failed is unsteady when REPORT.again, of a second run of what failed, has it as passed,
unless a sanitizer found something in the first."""

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
    print(kind, case.get("name"), output, sep="\t")
