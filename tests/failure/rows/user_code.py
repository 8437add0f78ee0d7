# SPDX-License-Identifier: Apache-2.0
"""Row 22: fork, double init and finalize, destructors and exit handlers, signals."""

import re

import jobs
from rows.sheet import Row, check

BOUND_MS = 10000
RANKS = 3

# Case: what a child of fork may end with (None: there is no child).
FORKS = {
    "fork-exit": r"code 0",
    "fork-barrier": r"code 1",
    "fork-finalize": r"code 1",
    "fork-malloc": r"code 1",
    "fork-put": r"code 1",
    "fork-wait": r"code 1",
    "fork-init": r"code 1",
    "fork-global-exit": r"code 1",
}
# Case: (the code of every rank, a pattern of the line that it ends with).
ENDS = {
    "twice": (0, r"shmem_finalize: called again"),
    "again": (0, None),
    "destructor-barrier": (1, r"shmem_barrier_all: called before shmem_init or after"),
    "destructor-finalize": (0, r"shmem_finalize: called again"),
    "destructor-initialized": (0, None),
    "destructor-after-barrier": (None, r"shmem_barrier_all: called before shmem_init or after"),
    "destructor-after-initialized": (0, None),
    "handler-before": (1, r"shmem_barrier_all: called before shmem_init or after"),
    "handler-after": (0, None),
    "interrupted": (0, None),
}


def run_case(sheet, case, launch):
    """[(rank or None, code, stdout, stderr)]."""
    command = [sheet.plan.program("failure_user_code"), case]
    if launch == "oshrun":
        job = jobs.start([jobs.OSHRUN, "-n", str(RANKS), "--timeout", "30", *command])
        return [jobs.finish(job)]
    return [jobs.finish(p) for p in jobs.by_hand_at(jobs.free_port(), RANKS, command)]


def check_fine(outcomes, case):
    out = "".join(text for _, text, _ in outcomes)
    errors = "".join(text for _, _, text in outcomes)
    for rank in range(RANKS):
        check(f"fine {rank}" in out, f"{case}: PE {rank} is not fine: {out!r} {errors!r}")
    return out, errors


def fork_case(sheet, case, launch):
    outcomes = run_case(sheet, case, launch)
    out, errors = check_fine(outcomes, case)
    child = re.search(r"child: (\w+ \d+)", out)
    check(child, f"no word of the child: {out!r} {errors!r}")
    check(re.fullmatch(FORKS[case], child[1]), f"the child ended with {child[1]}: {errors!r}")
    if FORKS[case] == "code 1":
        said = r"belongs to|taken|in use" if case == "fork-init" else r"in a child of fork\(\)"
        check(re.search(said, errors), f"no line {said!r}: {errors!r}")
    check(all(code == 0 for code, _, _ in outcomes), f"codes of the job: {outcomes}")


def end_case(sheet, case, launch):
    code, pattern = ENDS[case]
    outcomes = run_case(sheet, case, launch)
    _, errors = check_fine(outcomes, case)
    for ended, _, _ in outcomes:
        check(code is None or ended == code, f"code {ended}: {errors!r}")
        check(0 <= ended < 128, f"ended by a signal, code {ended}: {errors!r}")
    if pattern is not None and code is not None:
        check(re.search(pattern, errors), f"no line {pattern!r}: {errors!r}")


def table(sheet):
    cases = [(fork_case, case) for case in FORKS] + [(end_case, case) for case in ENDS]
    cases = [(run, case, launch) for run, case in cases for launch in ("oshrun", "by hand")]
    for run, case, launch in sheet.pick(cases, max(len(cases), sheet.plan.rounds)):
        with sheet.round(f"{case}, {launch}"):
            run(sheet, case, launch)


ROWS = [Row("22", "fork, double init, destructors, signals", BOUND_MS, table)]
