# SPDX-License-Identifier: Apache-2.0
"""Starting oshrun for the launcher's tests."""

import os
import subprocess
import sys
import time

from jobs.commands import is_alive

OSHRUN = os.environ.get("MEMSPAN_OSHRUN", "oshrun")
PROBE = os.environ.get("MEMSPAN_PROBE", "launcher_probe")  # a program that joins the job
PYTHON = sys.executable
SECONDS = 30  # the longest that anything here may take

# What the shell that runs the tests has of other launchers must not decide them.
_LAUNCHERS = ("MEMSPAN_", "OMPI_", "PMI_", "PMIX_", "FLUX_", "PALS_", "SLURM_", "RANK", "WORLD_SIZE",
              "LOCAL_", "MASTER_", "SHMEM_MASTER_")


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
    return {**clean, **more}


def start(*arguments, **more):
    """oshrun with pipes; `before` are the words before it, and `more` goes to Popen."""
    before = more.pop("before", ())
    more.setdefault("env", environment())
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([*before, OSHRUN, *map(str, arguments)], stderr=subprocess.PIPE, **more)


def run(*arguments, **more):
    """(code, stdout, stderr) of a whole job."""
    job = start(*arguments, **more)
    try:
        out, errors = job.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
        raise
    return job.returncode, (out or b"").decode(errors="replace"), errors.decode(errors="replace")


def strangers(**more):
    """For jobs of shells: without the warning about programs that do not use memspan."""
    return environment(MEMSPAN_LOG_LEVEL="ERROR", **more)


def start_shells(ranks, script, *options, **more):
    """A job of shells that run the script, or of bash when `shell` says so."""
    more.setdefault("env", strangers())
    return start("-n", ranks, *options, more.pop("shell", "sh"), "-c", script, **more)


def run_shells(ranks, script, *options, **more):
    """(code, stdout, stderr) of such a job."""
    more.setdefault("env", strangers())
    return run("-n", ranks, *options, more.pop("shell", "sh"), "-c", script, **more)


def read_lines(stream, count):
    """The next lines, without their ends."""
    lines = [stream.readline().decode().rstrip("\n") for _ in range(count)]
    assert all(lines), f"the job said only {lines}"
    return lines


def until(seconds, what, is_so):
    """Waits until it is so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.01)


def all_end(seconds, pids):
    until(seconds, f"the end of {pids}", lambda: not any(is_alive(int(pid)) for pid in pids))
