# SPDX-License-Identifier: Apache-2.0
"""Row 13: everything of a job is killed at any moment; nothing of it stays."""

import os
import shutil
import signal
import tempfile
import time

import jobs
from rows.sheet import Row, check

BOUND_MS = 1000
# From before the first instruction to well inside the job's work.
MOST_DELAY_S = 0.15
RANKS = 3


def entries():
    """Every file in the places where a job could leave one."""
    user = os.geteuid()
    places = ["/dev/shm", f"/tmp/memspan-{user}", f"/run/user/{user}/memspan"]
    if "XDG_RUNTIME_DIR" in os.environ:
        places.append(os.path.join(os.environ["XDG_RUNTIME_DIR"], "memspan"))
    return {
        os.path.join(place, name)
        for place in places
        if os.path.isdir(place)
        for name in os.listdir(place)
    }


def start(sheet, launch, port, *arguments):
    program = sheet.plan.program("failure_victim")
    if launch == "oshrun":
        return [jobs.start([jobs.OSHRUN, "-n", str(RANKS), program, *arguments])]
    return jobs.by_hand_at(port, RANKS, [program, *arguments])


def kill_everything(sheet, launch, processes):
    """Kills what there is, in any order. What a launcher has just started and nobody knows yet is
    for the launcher's guard to end."""
    pids = jobs.marked(sheet.mark)
    if launch == "oshrun, launcher alone":
        pids = [process.pid for process in processes]
    sheet.random.shuffle(pids)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for process in processes:
        process.kill()
        process.communicate()


def one_round(sheet, launch, port):
    before = entries()
    how = launch.split(",")[0]
    processes = start(sheet, how, port, "busy")
    with jobs.Ends(process.pid for process in processes) as ends:
        ends.wait(sheet.random.random() * MOST_DELAY_S)  # the random moment
    since = time.monotonic()
    kill_everything(sheet, launch, processes)
    with jobs.Ends(jobs.marked(sheet.mark)) as ends:
        left = ends.wait(BOUND_MS / 1e3)
    left += jobs.marked(sheet.mark)
    seconds = time.monotonic() - since
    check(not left, f"processes {left} are still there after {seconds:.2f} s")
    for process in start(sheet, how, port, "hello"):
        code, out, errors = jobs.finish(process)
        check(code == 0 and f" of {RANKS}" in out, f"the next start: code {code}, {out + errors!r}")
    check(entries() <= before, f"new files: {sorted(entries() - before)}")
    sheet.took(seconds)


def all_killed(sheet):
    before = os.environ.get("XDG_RUNTIME_DIR")
    folder = tempfile.mkdtemp(prefix="memspan-runtime-")
    launches = ["oshrun", "oshrun, launcher alone", "by hand"]
    choices = [(launch, place) for launch in launches for place in ("own", "default")]
    try:
        for launch, place in sheet.pick(choices):
            os.environ["XDG_RUNTIME_DIR"] = folder if place == "own" else "/nonexistent"
            with sheet.round(f"{launch}, {place} runtime folder"):
                one_round(sheet, launch, jobs.free_port())
        check_folder(sheet, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.environ.pop("XDG_RUNTIME_DIR")
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before


def check_folder(sheet, folder):
    with sheet.round("the runtime folder in the end"):
        left = [name for _, _, names in os.walk(folder) for name in names]
        check(not left, f"files {left}")


ROWS = [Row("13", "all processes are killed at any time", BOUND_MS, all_killed)]
