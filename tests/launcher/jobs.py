# SPDX-License-Identifier: Apache-2.0
"""Starting oshrun for the launcher's tests."""
import os
import subprocess
import sys

OSHRUN = sys.argv.pop(1)
PROBE = sys.argv.pop(1)  # a program that joins the job
PYTHON = sys.executable
SECONDS = 30  # the longest that anything here may take

# What the shell that runs the tests has of other launchers must not decide them.
_LAUNCHERS = ("MEMSPAN_", "OMPI_", "PMI_", "PMIX_", "FLUX_", "PALS_", "SLURM_", "RANK", "WORLD_SIZE",
              "LOCAL_", "MASTER_", "SHMEM_MASTER_")


def environment(**more):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(_LAUNCHERS)}
    return {**clean, **more}


def start(*arguments, **more):
    """oshrun with pipes; `more` goes to Popen."""
    more.setdefault("env", environment())
    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.Popen([OSHRUN, *map(str, arguments)], stderr=subprocess.PIPE, **more)


def run(*arguments, **more):
    """(code, stdout, stderr) of a whole job."""
    job = start(*arguments, **more)
    try:
        out, errors = job.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        job.kill()
        raise
    return job.returncode, (out or b"").decode(errors="replace"), errors.decode(errors="replace")
