# SPDX-License-Identifier: Apache-2.0
"""Ports for the stores of tests."""

import random
import socket

from jobs.hosts import ADDRESS


def _first_ephemeral_port():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as ports:
        return int(ports.read().split()[0])


def free_port():
    """A port whose neighbour 11 above is free too, as the rendezvous of RANK and WORLD_SIZE needs.

    Not of those that the kernel gives to connections: one of them could take it between two
    listenings of a test, and no time-out of a job would then be long enough.
    """
    while True:
        port = random.randrange(10000, _first_ephemeral_port() - 11)
        with socket.socket() as low, socket.socket() as high:
            try:
                low.bind((ADDRESS, port))
                high.bind((ADDRESS, port + 11))
            except OSError:
                continue
            return port
