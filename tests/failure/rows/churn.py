# SPDX-License-Identifier: Apache-2.0
"""Row 24: joining, leaving and killing for a long time; memory, descriptors and threads stay.

Three soaks, each a third of the time: the processes of one oshrun that leave and join again; two
processes that meet by address again and again; one process that outlives its peers, which join,
leave or are killed. Processes say themselves what they hold, at the same point of each cycle;
oshrun is looked at from outside."""

import os
import signal
import statistics
import time

import jobs
from rows.early import start_with_input
from rows.sheet import Row, check

WARM_UP = 0.3  # of the time: arenas, caches and lazily made threads
MOST_KIB_S = 1024 / 600  # a MiB in ten minutes
# Below this a growth is not told from the allocator's own steps, which are of 132 KiB.
SLACK_KIB = 160
WHAT = ("descriptors", "threads", "mappings")


class Watch:
    """What one process held, over time."""

    def __init__(self, name, seconds):
        self.name = name
        self.since = time.monotonic()
        self.seconds = seconds
        self.samples = []

    def is_over(self):
        return time.monotonic() - self.since >= self.seconds

    def add(self, words):
        """KiB, descriptors, threads and mappings."""
        self.samples.append((time.monotonic() - self.since, [int(word) for word in words]))

    def settled(self):
        return [sample for sample in self.samples if sample[0] >= WARM_UP * self.seconds]

    def check(self, sheet):
        settled = self.settled()
        check(len(settled) >= 6, f"{self.name}: only {len(settled)} samples")
        third = max(2, len(settled) // 3)
        first, last = settled[:third], settled[-third:]
        grown = middle(last, 0) - middle(first, 0)
        seconds = statistics.mean(t for t, _ in last) - statistics.mean(t for t, _ in first)
        sheet.note(
            f"{self.name}: {len(self.samples)} samples, {grown:+.0f} KiB in {seconds:.0f} s, "
            f"{settled[-1][1][1]} descriptors, {settled[-1][1][2]} threads"
        )
        allowed = MOST_KIB_S * seconds + SLACK_KIB
        check(grown <= allowed, f"{self.name} grew by {grown:.0f} KiB, allowed are {allowed:.0f}")
        for index, what in enumerate(WHAT, 1):
            before, after = (max(s[1][index] for s in part) for part in (first, last))
            check(after <= before, f"{self.name} has {after} {what}, {before} before")


def middle(samples, index):
    return statistics.median(values[index] for _, values in samples)


def look_at(watch, pid):
    """The same from outside, for a process that does not say so itself."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        fields = dict(line.split(":", 1) for line in status if ":" in line)
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps:
        mappings = len(maps.readlines())
    kib = fields["RssAnon"].split()[0]
    watch.add((kib, len(os.listdir(f"/proc/{pid}/fd")), fields["Threads"], mappings))


def stop(processes):
    for process in processes:
        process.kill()
        process.communicate()


def cycles_under_oshrun(sheet, seconds):
    ranks = 3
    program = sheet.plan.program("failure_blocked")
    job = jobs.start([jobs.OSHRUN, "-n", str(ranks), "--label", program, "cycles", "0"])
    watches = [Watch(f"PE {rank} under oshrun", seconds) for rank in range(ranks)]
    launcher = Watch("oshrun", seconds)
    try:
        while not launcher.is_over():
            line = job.stdout.readline()
            check(line, "the job ended")
            label, text = line.split(" ", 1)
            words = text.split()
            if words[0] != "holds":
                continue
            rank = int(label.strip("[]:"))
            watches[rank].add(words[2:])
            if rank == 0:
                look_at(launcher, job.pid)
    finally:
        stop([job])
        # The launcher's guard ends its processes.
        with jobs.Ends(jobs.marked(sheet.mark)) as ends:
            ends.wait(1)
    for watch in [*watches, launcher]:
        watch.check(sheet)


def meetings_by_address(sheet, seconds):
    program = sheet.plan.program("failure_early")
    url = f"tcp://127.0.0.1:{jobs.free_port()}"
    members = [jobs.start([program, "churn", str(rank), "2", url, "20", "0"]) for rank in (0, 1)]
    watches = [Watch(f"rank {rank} by address", seconds) for rank in (0, 1)]
    try:
        while not watches[0].is_over():
            for member, watch in zip(members, watches):
                line = jobs.read_until(member.stdout, "holds")
                bad = [text for text in line if text.startswith("cycle") and text[-2:] != " 0"]
                check(not bad, f"{watch.name}: {bad}")
                watch.add(line[-1].split()[2:])
    finally:
        stop(members)
    for watch in watches:
        watch.check(sheet)


def host_of_guests(sheet, seconds):
    program = sheet.plan.program("failure_early")
    # Its lines about each guest's death would fill a pipe that nobody reads meanwhile.
    host = start_with_input([program, "host", "0", "2", "-", "20", "0"], stderr=jobs.subprocess.DEVNULL)
    watch = Watch("a process whose peers come, leave and die", seconds)
    try:
        jobs.read_ready(host.stdout, 1)
        while not watch.is_over():
            watch.add(one_guest(sheet, program, host))
            sheet.n += 1
    finally:
        stop([host])
    watch.check(sheet)


def one_guest(sheet, program, host):
    """A guest joins, and leaves or is killed, before or after it has joined; the host's holdings."""
    url = f"tcp://127.0.0.1:{jobs.free_port()}"
    guest = start_with_input([program, "guest", "1", "2", url, "20", "0"])
    host.stdin.write(url + "\n")
    host.stdin.flush()
    is_killed = sheet.random.random() < 0.5
    jobs.read_ready(guest.stdout, 1)
    if is_killed:
        with jobs.Ends([guest.pid]) as ends:
            ends.wait(sheet.random.random() * 0.005)
        os.kill(guest.pid, signal.SIGKILL)
    code, _, errors = jobs.finish(guest)
    check(is_killed or code == 0, f"the guest ended with code {code}: {errors!r}")
    lines = jobs.read_until(host.stdout, "holds")
    check(lines[0] == "joined 0", f"the host: {lines}")
    check(is_killed != ("left 0" in lines), f"guest killed: {is_killed}, the host: {lines}")
    return lines[-1].split()[2:]


def soak(sheet):
    for part in (cycles_under_oshrun, meetings_by_address, host_of_guests):
        with sheet.round(part.__name__.replace("_", " ")):
            part(sheet, sheet.plan.soak_s / 3)


ROWS = [Row("24", "joining, leaving and killing for a long time", 0, soak)]
