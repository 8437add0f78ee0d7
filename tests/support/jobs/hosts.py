# SPDX-License-Identifier: Apache-2.0
"""The hosts of a test session: MEMSPAN_TEST_HOSTS=2, 2+2 or 3+1 parts the processes of every job of the
tests. They are simulated ones, as of ``oshrun --simulate-hosts``, or network namespaces, where
MEMSPAN_TEST_HOLDERS has for each host the id of a process in it (tests/hosts/on_hosts.py). Between hosts
nothing is mapped.

A test that needs mapped memory says so, and what a job of two hosts gets instead:

    @pytest.mark.one_host(reason="peers' memory is a tensor", instead=check_the_refusal)
"""

import ctypes
import os
import socket

from jobs.namespaces import enter

_SIZES = [int(size) for size in os.environ.get("MEMSPAN_TEST_HOSTS", "1").split("+")]
_COUNT = _SIZES[0] if len(_SIZES) == 1 else len(_SIZES)
_HOLDERS = list(filter(None, os.environ.get("MEMSPAN_TEST_HOLDERS", "").split(":")))
ARE_MANY = _COUNT > 1
ARE_REAL = ARE_MANY and bool(_HOLDERS)
# Of the first host, which all reach.
ADDRESS = os.environ.get("MEMSPAN_TEST_ADDRESS", "127.0.0.1")
_ENTER_HOST = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "enter_host.sh")
_NAMESPACES = 0x00020000 | 0x40000000 | 0x04000000 | 0x08000000  # mounts, network, name, System V


def sizes(ranks):
    """How many of a job's processes each host has: as the variable says where that fits, else as even
    as can be."""
    if len(_SIZES) > 1 and sum(_SIZES) == ranks:
        return _SIZES
    count = min(_COUNT, ranks)
    return [ranks // count + (host < ranks % count) for host in range(count)]


def ranks_or(*numbers):
    """The sizes of a test's jobs: as many as the hosts have together where the variable says how many each
    has, else these."""
    return [sum(_SIZES)] if len(_SIZES) > 1 else list(numbers)


def host_of(rank, ranks):
    return [host for host, size in enumerate(sizes(ranks)) for _ in range(size)][rank]


def are_near(one, other, ranks):
    """Whether two ranks of a job are on one host."""
    return host_of(one, ranks) == host_of(other, ranks)


def inside(host):
    """The words before a command that runs on that host, where hosts are namespaces."""
    return enter(_HOLDERS[host]) if _HOLDERS else []


def environment_of(host):
    """What a process of that host has that finds the others without a launcher."""
    return {} if _HOLDERS else {"MEMSPAN_HOST_ID": f"test-host-{host}"}


def environment(rank, ranks):
    return environment_of(host_of(rank, ranks)) if ARE_MANY else {}


def move_to_host(rank, ranks):
    """Takes the calling process, which has one thread, to the namespaces of its host."""
    if not ARE_REAL:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    holder = os.pidfd_open(int(_HOLDERS[host_of(rank, ranks)]))
    if libc.setns(holder, _NAMESPACES) != 0:
        raise OSError(ctypes.get_errno(), "entering the namespaces of a host")
    os.close(holder)


def own_address():
    """Of the calling process's host, for others."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nothing_is_sent:
        nothing_is_sent.connect((ADDRESS, 9))
        return nothing_is_sent.getsockname()[0]


def options_of(parts):
    """Of oshrun, for hosts with so many processes each."""
    if not _HOLDERS:
        return ["--simulate-hosts", "+".join(map(str, parts))]
    named = ",".join(f"host-{host}:{size}" for host, size in enumerate(parts))
    return ["--hosts", named, "--remote-shell", f"sh {_ENTER_HOST} {{}}"]


def launcher_options(ranks):
    """What ``oshrun -n ranks`` is given beside."""
    parts = sizes(ranks)
    return options_of(parts) if len(parts) > 1 else []
