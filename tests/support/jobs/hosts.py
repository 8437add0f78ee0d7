# SPDX-License-Identifier: Apache-2.0
"""The simulated hosts of a test session: MEMSPAN_TEST_HOSTS=2, 2+2 or 3+1 parts the processes of every
job of the tests, as ``oshrun --simulate-hosts`` does. Between hosts nothing is mapped.

A test that needs mapped memory says so, and what a job of two hosts gets instead:

    @pytest.mark.one_host(reason="peers' memory is a tensor", instead=check_the_refusal)
"""

import os

_SIZES = [int(size) for size in os.environ.get("MEMSPAN_TEST_HOSTS", "1").split("+")]
_COUNT = _SIZES[0] if len(_SIZES) == 1 else len(_SIZES)
ARE_MANY = _COUNT > 1


def sizes(ranks):
    """How many of a job's processes each host has: as the variable says where that fits, else as even
    as can be."""
    if len(_SIZES) > 1 and sum(_SIZES) == ranks:
        return _SIZES
    count = min(_COUNT, ranks)
    return [ranks // count + (host < ranks % count) for host in range(count)]


def host_of(rank, ranks):
    return [host for host, size in enumerate(sizes(ranks)) for _ in range(size)][rank]


def are_near(one, other, ranks):
    """Whether two ranks of a job are on one host."""
    return host_of(one, ranks) == host_of(other, ranks)


def environment(rank, ranks):
    """What a process has that finds the others without a launcher."""
    return {"MEMSPAN_HOST_ID": f"test-host-{host_of(rank, ranks)}"} if ARE_MANY else {}


def launcher_options(ranks):
    """What ``oshrun -n ranks`` is given beside."""
    parts = sizes(ranks)
    return ["--simulate-hosts", "+".join(map(str, parts))] if len(parts) > 1 else []
