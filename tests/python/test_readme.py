# SPDX-License-Identifier: Apache-2.0
"""The README's Python programs, run by the commands that it prints, with the output that it prints."""

import os
import re
import subprocess
import sys

from jobs import hosts
import jobs

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", flags=re.S | re.M)


def shown(words):
    """(program, commands, output): the Python program that has the words, and the blocks of sh and text behind it."""
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        blocks = [(block["language"], block["text"]) for block in BLOCK.finditer(file.read())]
    first = next(i for i, (language, text) in enumerate(blocks) if language == "python" and words in text)
    (_, program), (sh, commands), (text, output) = blocks[first : first + 3]
    assert (sh, text) == ("sh", "text")
    return program, commands.splitlines(), output


def environment():
    """That of a user who has activated the environment of these tests. Unbuffered, a line would leave in pieces, and
    those of other processes come between."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    folders = [os.path.dirname(sys.executable), os.path.dirname(os.environ["MEMSPAN_OSHRUN"]), found["PATH"]]
    return {**found, "PATH": os.pathsep.join(folders)}


def typed(command, folder):
    """What the command prints to stdout, and to stderr."""
    options = {"cwd": folder, "env": environment(), "capture_output": True, "text": True, "timeout": jobs.LIMIT_S}
    done = subprocess.run(["bash", "-euc", command], **options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_the_ring(tmp_path):
    program, (command,), output = shown("shmem_putmem")
    (tmp_path / "ring.py").write_text(program)
    out, err = typed(command, tmp_path)
    assert ("".join(sorted(out.splitlines(keepends=True))), err) == (output, "")


def test_the_ring_by_hand(tmp_path):
    """As torchrun would: the environment of each process says who it is."""
    program, _, output = shown("shmem_putmem")
    ring = tmp_path / "ring.py"
    ring.write_text(program)
    size = output.count("\n")
    job = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(jobs.free_port())}
    processes = [
        subprocess.Popen(
            [sys.executable, ring],
            env={**environment(), **job, **hosts.environment(rank, size), "RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    outputs = [process.communicate(timeout=jobs.LIMIT_S)[0] for process in processes]
    assert ([process.returncode for process in processes], "".join(outputs)) == ([0] * size, output)


def test_kv_blocks_outlive_the_process_that_stored_them(tmp_path):
    program, (gives, uses), output = shown("KvPool")
    usual, store = "tcp://127.0.0.1:8574", f"tcp://127.0.0.1:{jobs.free_port()}"
    assert usual in program
    (tmp_path / "kv.py").write_text(program.replace(usual, store))
    share = subprocess.Popen(
        ["bash", "-euc", "exec " + gives.replace("--share", f"--store {store} --share")],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert share.stdout.readline().startswith("kv_pool: gives ")
        assert typed(uses, tmp_path) == (output, "")
    finally:
        share.terminate()
        share.communicate(timeout=jobs.LIMIT_S)
    assert share.returncode == 0
