# SPDX-License-Identifier: Apache-2.0
"""The processes of a measurement: one for each rank, as torch.distributed's launchers start them."""

import os
import socket
import subprocess
import sys

END_S = 60  # for the others, once rank 0 has ended


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(command, world, inside=lambda rank: [], **variables):
    """The processes, each in a session of its own; rank 0's output is a pipe. inside(rank): words before the command."""
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    processes = []
    for rank in range(world):
        environment = {**os.environ, **common, "RANK": str(rank), **variables}
        output = subprocess.PIPE if rank == 0 else None
        words = [*inside(rank), sys.executable, *command]
        processes.append(subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=output, start_new_session=True))
    return processes


def run(command, world, limit_s, inside=lambda rank: [], **variables):
    """What rank 0 printed. Ends this process when a rank fails."""
    processes = start(command, world, inside, **variables)
    try:
        printed, _ = processes[0].communicate(timeout=limit_s)
        for rank, process in enumerate(processes):
            if process.wait(timeout=END_S) != 0:
                sys.exit(f"rank {rank} of {' '.join(command)} ended with {process.returncode}")
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
    return printed.decode()
