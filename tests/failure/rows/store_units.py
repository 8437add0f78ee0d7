# SPDX-License-Identifier: Apache-2.0
"""Rows 16 to 19: what the store's own tests show, as far as this build has them. n is the number of
tests that ran."""

import json
import os
import tempfile

import jobs
from rows.sheet import Row, Skip, check

LIMIT_S = 600


def tests_of(sheet, program, module, names):
    """{test: failed} of the tests of a module; Skip when it is not there or has none of them."""
    path = sheet.plan.program(program)
    if not os.path.exists(path):
        raise Skip(f"{program} is not built")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        arguments = ["--module", module, f"--gtest_filter={names}", f"--gtest_output=json:{report}"]
        process = jobs.start([path, *arguments])
        out, errors = process.communicate(timeout=LIMIT_S)
        if not os.path.exists(report):
            raise AssertionError(f"{program}, {module}: ended with {process.returncode}: {out + errors}")
        with open(report, encoding="utf-8") as file:
            suites = json.load(file)["testsuites"]
    tests = {}
    for suite in suites:
        for test in suite["testsuite"]:
            if test.get("result") == "COMPLETED":
                tests[f"{suite['name']}.{test['name']}"] = test
    if not tests:
        raise Skip(f"{program}, {module}: no test {names}")
    return tests


def row_of(*modules):
    """A row that is shown by the tests of all the modules; (program, module, names of tests)."""

    def run(sheet):
        missing = []
        for program, module, names in modules:
            try:
                tests = tests_of(sheet, program, module, names)
            except Skip as reason:
                missing.append(str(reason))
                continue
            except AssertionError as error:
                sheet.fail(str(error))
                continue
            for name, test in tests.items():
                with sheet.round(name):
                    check("failures" not in test, test.get("failures"))
        # A part of the evidence is none.
        if missing:
            raise Skip("; ".join(missing))

    return run


# Tests of connections that are not authenticated, which are row 17's; the rest of the module is row 16's.
PENDING = (
    "*Idle*:*Flood*:*HalfOpen*:*NotAuthenticated*:*SaysNothing*:*ByteByByte*:*InTheMiddleOfAFrame*"
    ":*NeverReads*:*ComesAndGoes*"
)

ROWS = [
    Row("16", "hostile bytes at the store", 0, row_of(("network_store", "hostile", f"-{PENDING}"))),
    Row(
        "17",
        "idle, slow and half-open connections",
        0,
        row_of(
            ("network_store", "hostile", PENDING),
            ("network_store", "connection_flood", "*"),
            ("unit_store", "admission", "*"),
        ),
    ),
    Row(
        "18",
        "bad certificates and keys",
        0,
        row_of(*(("network_store", module, "*") for module in ("certificates", "tls", "tls_files"))),
    ),
    Row("19", "TLS is asked for; nothing in the clear", 0, row_of(("network_store", "protection", "*"))),
]
