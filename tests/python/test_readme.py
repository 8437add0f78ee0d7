# SPDX-License-Identifier: Apache-2.0
"""The programs that the documents show, as they stand there."""

import os
import re
import subprocess
import sys

from jobs import hosts
import jobs
import pytest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def programs_of(document):
    with open(os.path.join(ROOT, document), encoding="utf-8") as file:
        return re.findall(r"^```python\n(.*?)^```$", file.read(), flags=re.S | re.M)


def run_with_four(program, launcher):
    # Unbuffered, a line would leave in pieces, and those of others come between.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run(
        [*launcher, program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == sorted(
        word for me in range(4) for word in f"PE {me} of 4 got {(me + 3) % 4}".split()
    )


@pytest.mark.parametrize("document", ["README.md", "docs/python.md"])
def test_the_ring(document, tmp_path):
    ring = tmp_path / "ring.py"
    ring.write_text(next(p for p in programs_of(document) if "shmem_putmem" in p))
    run_with_four(ring, [os.environ["MEMSPAN_OSHRUN"], *hosts.launcher_options(4), "-n", "4", sys.executable])


def test_the_ring_by_hand(tmp_path):
    """As torchrun would: the environment of each process says who it is."""
    ring = tmp_path / "ring.py"
    ring.write_text(programs_of("README.md")[0])
    environment = {
        **os.environ,
        "WORLD_SIZE": "4",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(jobs.free_port()),
    }
    processes = [
        subprocess.Popen(
            [sys.executable, ring],
            env={**environment, **hosts.environment(rank, 4), "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(4)
    ]
    for rank, process in enumerate(processes):
        out, _ = process.communicate(timeout=jobs.LIMIT_S)
        assert (process.returncode, out) == (0, f"PE {rank} of 4 got {(rank + 3) % 4}\n")
