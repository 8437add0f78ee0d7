# SPDX-License-Identifier: Apache-2.0
"""examples/python, as their users run them."""

import importlib.util
import os
import pathlib
import runpy
import shlex
import subprocess
import sys

import jobs
import pytest
from jobs import hosts

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
TORCH = "symmetric_tensors.py"


def store():
    return f"tcp://{hosts.ADDRESS}:{jobs.free_port()}"


def run(*command, **environment):
    return subprocess.run(
        [str(EXAMPLES / word) if str(word).endswith(".py") else str(word) for word in command],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=jobs.LIMIT_S,
    )


def of_job(ranks, program, *arguments):
    launcher = [os.environ["MEMSPAN_OSHRUN"], "-n", ranks, *hosts.launcher_options(ranks), sys.executable]
    return run(*launcher, program, *arguments, SHMEM_IP_PORT=store())


@pytest.mark.parametrize(
    ("ranks", "program", "arguments", "line"),
    [
        (3, "ring_shift.py", [500], "ring_shift: 3 processes, 500 elements, PASS"),
        (1, "ring_shift.py", [], "ring_shift: 1 process, 1000 elements, PASS"),
        (3, "histogram.py", [2000, 50], "histogram: 3 processes, 6000 samples in 50 buckets, PASS"),
        (2, "producer_consumer.py", [100], "producer_consumer: 1 consumers, 100 items, PASS"),
        (3, "producer_consumer.py", [101], "producer_consumer: 2 consumers, 101 items, PASS"),
        (2, "pool.py", None, "pool: 2 members, 2097152 bytes, PASS"),
        (3, "pool.py", None, "pool: 3 members, 3145728 bytes, PASS"),
    ],
)
def test_a_job(ranks, program, arguments, line):
    done = of_job(ranks, program, *([store()] if arguments is None else arguments))
    assert (done.returncode, done.stdout) == (0, line + "\n"), done.stderr


def symmetric_tensors(rank, ranks):
    sys.argv = [TORCH, "20", "8"]
    runpy.run_path(str(EXAMPLES / TORCH), run_name="__main__")


def far_symmetric_tensors_are_refused():
    ends = jobs.Job(symmetric_tensors, 2, SHMEM_IP_PORT=store()).ends()
    if importlib.util.find_spec("torch") is not None:
        assert all(code != 0 for code, _, _ in ends)
        assert "rank 1 is on another host than rank 0" in ends[0][2], ends


@pytest.mark.one_host(reason="peers' memory is a tensor", instead=far_symmetric_tensors_are_refused)
def test_symmetric_tensors():
    said = jobs.run(symmetric_tensors, 2, SHMEM_IP_PORT=store())
    if importlib.util.find_spec("torch") is None:
        assert said == ["symmetric_tensors: skipped, since PyTorch is not here\n"] * 2
    else:
        assert said == ["symmetric_tensors: 2 ranks, 20 rows each, PASS\n", ""]


@pytest.mark.parametrize(
    ("first", "said", "verdict"),
    [
        (
            ["transfer.py", "--store", None, "receive"],
            "transfer: sent 16 pieces",
            "transfer: 1048576 bytes of ",
        ),
        (
            ["kv_blocks.py", "decode"],
            "kv_blocks: sent 20 pieces",
            "kv_blocks: request 7 brought 5 blocks",
        ),
    ],
    ids=["transfer", "kv_blocks"],
)
def test_two_processes(first, said, verdict):
    """The first one prints the command that starts the second."""
    where = store()
    first = [where if word is None else word for word in first]
    environment = {**os.environ, "MEMSPAN_STORE": where}
    program = EXAMPLES / first.pop(0)
    command = [sys.executable, program, *first]
    environment.update(hosts.environment(0, 2))
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as waiting:
        try:
            python, *second = shlex.split(waiting.stdout.readline())
            assert (python, second[0]) == ("python", str(program))
            done = run(sys.executable, *second, MEMSPAN_STORE=where, **hosts.environment(1, 2))
            assert (done.returncode, done.stdout) == (0, said + "\n"), done.stderr
            line = waiting.stdout.readline()
            assert line.startswith(verdict) and line.endswith(", PASS\n")
            assert waiting.wait(jobs.LIMIT_S) == 0
        finally:
            waiting.kill()


@pytest.mark.parametrize(
    ("ranks", "command", "code", "sentence"),
    [
        (0, ["ring_shift.py", "0"], 2, "elements is 0, allowed are 1 to"),
        (0, ["histogram.py", "10", "-1"], 2, "buckets is -1, allowed are 1 to"),
        (0, ["producer_consumer.py", "many"], 2, "invalid int value: 'many'"),
        (1, ["producer_consumer.py"], 1, "there is 1 process, needed are 2 and more"),
        (0, ["pool.py"], 2, "start it by oshrun"),
        (2, ["pool.py", "nowhere"], 1, "pool: "),
        (0, ["transfer.py"], 2, "arguments are required: role"),
        (0, ["kv_blocks.py", "prefill", "127.0.0.1:1", "0", "64"], 2, "allowed are 0 to 63"),
    ],
)
def test_wrong_use_ends_with_a_sentence(ranks, command, code, sentence):
    lonely = {"RANK", "WORLD_SIZE"} & set(os.environ)
    assert not lonely, f"the tests run in a job: {lonely}"
    done = of_job(ranks, *command) if ranks else run(sys.executable, *command)
    assert done.returncode == code and done.stdout == ""
    assert sentence in done.stderr and "Traceback" not in done.stderr, done.stderr
    if command == ["pool.py", "nowhere"]:  # each of the two says it once
        assert done.stderr.count("nowhere") == 2, done.stderr


def test_one_without_a_launcher_is_a_job_of_one():
    done = run(sys.executable, "ring_shift.py")
    assert (done.returncode, done.stdout) == (0, "ring_shift: 1 process, 1000 elements, PASS\n")


def test_they_are_short_and_say_how_to_run_them():
    programs = sorted(EXAMPLES.glob("*.py"))
    assert len(programs) == 8
    for program in programs:
        lines = program.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 80, program
        assert any(program.name in line for line in lines[2:8]), program
        assert program.name in (EXAMPLES / "README.md").read_text(encoding="utf-8")
