# SPDX-License-Identifier: Apache-2.0
"""Jobs of failure_early: the CANN SHMEM face, whose calls say what went wrong."""

import time

import jobs

LIMIT_S = 1  # all time-outs of the attributes


class EarlyJob:
    """`ranks` processes that have joined, of which `idle` will never make the call. The others make
    it when told to go."""

    def __init__(self, sheet, call, ranks, idle, limit_s=LIMIT_S):
        program = sheet.plan.program("failure_early")
        url = f"tcp://127.0.0.1:{jobs.free_port()}"
        self.idle = idle
        self.processes = [
            start_with_input(
                [program, call, str(rank), str(ranks), url, str(limit_s), str(idle)]
            )
            for rank in range(ranks)
        ]
        self.before = {}
        self.pids = {}
        for rank, process in enumerate(self.processes):
            lines = jobs.read_until(process.stdout, "ready")
            self.pids[rank] = int(lines[-1].split()[2])
            self.before[rank] = holdings(lines, "before holds")

    def callers(self):
        return [rank for rank in self.pids if rank != self.idle]

    def go(self):
        for rank in self.callers():
            self.processes[rank].stdin.close()
            self.processes[rank].stdin = None
        return time.monotonic()


def start_with_input(command, **streams):
    return jobs.start(command, stdin=jobs.subprocess.PIPE, **streams)


def holdings(lines, prefix):
    """(KiB, descriptors, threads, mappings) of the line "PREFIX CYCLE ..."; None without one."""
    for line in lines:
        if line.startswith(prefix + " "):
            return tuple(int(word) for word in line.split()[-4:])
    return None


def returned(line):
    """(code, ms, reason) of a line "returned RANK CODE MS REASON"."""
    words = line.split(" ", 4)
    return int(words[2]), float(words[3]), words[4] if len(words) > 4 else ""
