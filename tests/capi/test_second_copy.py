# SPDX-License-Identifier: Apache-2.0
"""test_second_copy.py PROGRAM FOLDER JOB: PROGRAM loads libraries of FOLDER and copies of them. A second copy of
the library in one process is reported, a second name of it is not. JOB, which is linked with the library, loads a copy
as well: its variables stay shared."""

import os
import shutil
import subprocess
import sys
import tempfile

import jobs

PROGRAM, FOLDER, JOB = sys.argv[1:]
NAMES = ("libmemspan.so", "libshmem.so", "libmf_smem.so", "libmf_hybm_core.so")


def printed(*libraries):
    return subprocess.run([PROGRAM, *libraries], check=True, capture_output=True, text=True, timeout=60).stderr


def check_job(processes):
    for process in processes:
        code, _, errors = jobs.finish(process)
        assert code == 0 and "loads memspan twice" in errors, errors


with tempfile.TemporaryDirectory() as elsewhere:
    first = os.path.join(FOLDER, NAMES[0])
    assert printed(*(os.path.join(FOLDER, name) for name in NAMES)) == ""
    for name in (*NAMES, "libmemspan.so.0"):
        copy = os.path.join(elsewhere, name)
        shutil.copy(first, copy)
        lines = printed(first, copy).splitlines()
        assert len(lines) == 1, lines
        assert f"this process loads memspan twice, from {first} and {copy}:" in lines[0], lines

    copy = os.path.join(elsewhere, NAMES[0])
    check_job([jobs.start([jobs.OSHRUN, "-n", "2", JOB, copy])])
    check_job(jobs.by_hand_at(jobs.free_port(), 2, [JOB, copy]))
