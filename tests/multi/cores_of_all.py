#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cores_of_all.py PROGRAM: two PEs that met over a store, bound as a launcher may bind them.

With a core each their waits spin; on one core they yield at once. What the start tells at level DEBUG is
looked at. Exits with 77 where there is one core only.
"""

import os
import socket
import subprocess
import sys


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def told(program, cores):
    port = free_port()
    members = []
    for rank, core in enumerate(cores):
        environment = {**os.environ, "RANK": str(rank), "WORLD_SIZE": str(len(cores)), "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(port), "SHMEM_MASTER_ADDR": "127.0.0.1", "SHMEM_MASTER_PORT": str(port),
                       "SHMEM_LOG_LEVEL": "DEBUG"}
        members.append(subprocess.Popen(
            [program, "--gtest_filter=WaitTest.EveryComparison"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, preexec_fn=lambda core=core: os.sched_setaffinity(0, {core})))
    return [member.communicate(timeout=60)[0] for member in members]


def main():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("needs=two_cores")
        return 77
    for chosen, expected in ((cores[:2], "waits spin"), (cores[:1] * 2, "waits yield at once")):
        for rank, text in enumerate(told(sys.argv[1], chosen)):
            if expected not in text:
                print(f"PE {rank} on core {chosen[rank]} of {chosen} does not say \"{expected}\":\n{text}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
