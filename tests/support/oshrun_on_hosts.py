# SPDX-License-Identifier: Apache-2.0
"""oshrun_on_hosts.py OSHRUN -n N --simulate-hosts 3+1 WORDS...: the job on as many namespaces, where the
test session has them (jobs/hosts.py), else on simulated hosts."""

import os
import sys

from jobs import hosts


def main():
    oshrun, n, ranks, simulate, layout, *words = sys.argv[1:]
    if (n, simulate) != ("-n", "--simulate-hosts"):
        raise SystemExit(f"oshrun_on_hosts: not a job on hosts: {sys.argv[1:]}")
    parts = [int(part) for part in layout.split("+")]
    if len(parts) == 1:
        parts = [int(ranks) // parts[0] + (host < int(ranks) % parts[0]) for host in range(parts[0])]
    os.execv(oshrun, [oshrun, n, ranks, *hosts.options_of(parts), *words])


main()
