# SPDX-License-Identifier: Apache-2.0
"""Ports for the stores of tests."""

import collections
import random
import socket

from jobs.hosts import ADDRESS


def _first_ephemeral_port():
    with open("/proc/sys/net/ipv4/ip_local_port_range") as ports:
        return int(ports.read().split()[0])


# Of the last ports that this process took: each has a Unix socket with its name, which no other process can bind, so
# that tests at the same time do not take the same port.
_names = collections.deque()
_MOST_NAMES = 64


def _reserve(port):
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind(f"\0memspan-test-port-{port}")
    except OSError:
        name.close()
        return False
    _names.append(name)
    if len(_names) > _MOST_NAMES:
        _names.popleft().close()
    return True


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
        if _reserve(port) and _reserve(port + 11):
            return port
