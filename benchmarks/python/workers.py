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


def run(command, world, limit_s, inside=lambda rank: [], **variables):
    """What rank 0 printed. Ends this process when a rank fails. inside(rank): words before the command."""
    common = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "OMP_NUM_THREADS": "1"}
    processes = []
    for rank in range(world):
        environment = {**os.environ, **common, "RANK": str(rank), **variables}
        processes.append(
            subprocess.Popen([*inside(rank), sys.executable, *command], env=environment, stdout=subprocess.PIPE if rank == 0 else None, text=True)
        )
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
    return printed
