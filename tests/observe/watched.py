# SPDX-License-Identifier: Apache-2.0
"""Jobs of watched.c, and memspan-top's view of them."""

import contextlib
import json
import os
import subprocess
import tempfile

from jobs.launcher import SECONDS, environment, read_lines, start, until

TOP = os.environ.get("MEMSPAN_TOP", "memspan-top")
WATCHED = os.environ.get("MEMSPAN_WATCHED", "observe_watched")
# What each PE of watched.c does before it prints "ready": kind: (calls, bytes).
DONE = {"put": (1000, 8000), "get": (300, 2400), "atomic": (200, 1600), "signal": (100, 1600)}


@contextlib.contextmanager
def watched(ranks, *options, shell=False, mode=None, **variables):
    """A job in which all have done their calls and wait for PE 1, until release().

    With `shell` each PE is the child of one; `mode` as watched.c has it.
    """
    program = ["sh", "-c", '"$0"; exit $?', WATCHED] if shell else [WATCHED]
    program += [mode] if mode else []
    with tempfile.TemporaryDirectory() as folder:
        pipe = os.path.join(folder, "hold")
        os.mkfifo(pipe)
        ends = [os.open(pipe, os.O_RDWR)]
        job = start("-n", ranks, *options, *program, env=environment(WATCHED_HOLD=pipe, **variables))
        job.release = lambda: os.close(ends.pop())
        try:
            assert read_lines(job.stdout, ranks) == ["ready"] * ranks
            yield job
        finally:
            if ends:
                job.release()
            if job.poll() is None:
                job.kill()
            job.communicate()


def end(job):
    """Releases it: (code, what it wrote to stderr)."""
    job.release()
    _, errors = job.communicate(timeout=SECONDS)
    return job.returncode, errors.decode()


def top(*options):
    """What memspan-top prints."""
    done = subprocess.run([TOP, *options], capture_output=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode()


def groups(*options):
    return json.loads(top("--once", "--json", "--interval", "0", *options))["groups"]


def wait_until_told(job, *waiters):
    """The job's group, once these ranks wait for PE 1."""
    found = []

    def is_told():
        found[:] = jobs_of(job.pid)
        waits = {member["rank"]: member["waiting"] for group in found for member in group["members"]}
        return all(waits.get(rank) and waits[rank][0]["for"] == 1 for rank in waiters)

    until(SECONDS, f"{waiters} wait for PE 1", is_told)
    return found[0]


def jobs_of(parent):
    """The groups that are jobs of the children of this process."""
    def is_ours(member):
        try:
            with open(f"/proc/{member['pid']}/stat", encoding="ascii") as stat:
                return int(stat.read().rpartition(")")[2].split()[1]) == parent
        except (FileNotFoundError, ProcessLookupError, TypeError):
            return False

    return [group for group in groups() if any(is_ours(member) for member in group["members"])]
