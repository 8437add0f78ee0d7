# SPDX-License-Identifier: Apache-2.0
"""Jobs of stopped processes: they are named, and a signal or a closed terminal ends them."""

import os
import re
import signal

from jobs.launcher import SECONDS, read_lines, until
from jobs.terminal import state_of
from of_shells import BOUND_S, FOR_EVER, LAYOUTS, OfShells

# What stops a PE by which signal.
STOPS = {"SIGSTOP": "kill -STOP $$", "SIGTTOU": "echo text >/dev/tty", "SIGTTIN": "read answer </dev/tty"}


def named(ranks, stop):
    return f"; PE {f'0-{ranks - 1} were' if ranks > 1 else '0 was'} stopped by {stop}"


def noted(text):
    """[(rank, signal)] of the lines about stopped PEs."""
    found = []
    for ranks, stop in re.findall(r"oshrun: PE ([\d, -]+) (?:is|are) stopped by (SIG\w+) \[memspan-explain", text):
        for part in ranks.split(", "):
            first, _, last = part.partition("-")
            found += [(rank, stop) for rank in range(int(first), int(last or first) + 1)]
    return found


class StoppedTest(OfShells):
    def read_until_noted(self, job, ranks, stop):
        """All PEs are in lines about stopped ones, each once."""
        job.read_while(lambda seen: len(noted(seen.decode())) < ranks, f"{ranks} PEs stopped by {stop}")
        self.assertEqual(sorted(noted(job.seen.decode())), [(rank, stop) for rank in range(ranks)])

    def test_one_signal_ends_a_stopped_job(self):
        for layout, (ranks, _) in LAYOUTS.items():
            for stop, script in STOPS.items():
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                    with self.subTest(layout=layout, stop=stop, number=number):
                        job = self.in_terminal(layout, f"{script}; exec sleep 60", tostop=True)
                        self.read_until_noted(job, ranks, stop)
                        if number == signal.SIGINT:
                            job.type(b"\x03")
                        else:
                            os.kill(job.pid, number)
                        job.read_until(f"oshrun: the job was ended by signal {number.value} ".encode(), BOUND_S)
                        job.read_until(named(ranks, stop).encode(), BOUND_S)
                        self.assertEqual(job.code(BOUND_S), 128 + number)
                        self.expect_nothing_left()

    def test_a_closed_terminal_ends_a_stopped_job(self):
        # With SIGHUP the kernel sends SIGCONT to the session's leader and, at its end, to the foreground. A job in the
        # background gets only the SIGHUP of an interactive shell.
        background = 'set -m; trap "kill -HUP \\$!; exit 129" HUP; "$@" & wait'
        for shell in ('exec "$@"', 'set -m; "$@"; exit 129', background):
            for layout, (ranks, _) in LAYOUTS.items():
                for stop, script in STOPS.items():
                    with self.subTest(shell=shell, layout=layout, stop=stop):
                        job = self.in_terminal(layout, f"{script}; exec sleep 60", shell, tostop=True)
                        self.wait_until_stopped(ranks)
                        job.close()
                        self.assertIn(job.code(BOUND_S), (129, -signal.SIGHUP))
                        self.expect_nothing_left()

    def test_processes_that_stop_again_are_killed(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.in_terminal(layout, "trap '' TERM; echo text >/dev/tty; exec sleep 60", tostop=True)
                self.read_until_noted(job, ranks, "SIGTTOU")
                os.kill(job.pid, signal.SIGTERM)
                job.read_until(f"signal 15 (Terminated){named(ranks, 'SIGTTOU')}".encode(), BOUND_S)
                self.assertEqual(job.code(BOUND_S), 128 + signal.SIGTERM)
                self.expect_nothing_left()

    def test_a_handler_that_stops_is_killed(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start(layout, f"trap 'while :; do kill -STOP $$; done' TERM; echo ready; {FOR_EVER}")
                read_lines(job.stdout, ranks)
                job.terminate()
                self.assertIn(named(ranks, "SIGSTOP"), self.finish(job, 128 + signal.SIGTERM)[1])

    def test_handlers_of_stopped_processes_run(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start(layout, f"trap 'echo saved; exit 0' TERM; kill -STOP $$; {FOR_EVER}")
                self.wait_until_stopped(ranks)
                job.terminate()
                self.assertEqual(self.finish(job, 0)[0], "saved\n" * ranks)

    def test_a_handler_may_take_its_time(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start(layout, f"trap 'sleep 1.5; echo saved; exit 0' TERM; kill -STOP $$; {FOR_EVER}")
                self.wait_until_stopped(ranks)
                job.terminate()
                self.assertEqual(self.finish(job, 0)[0], "saved\n" * ranks)

    def test_one_stopped_process_of_several(self):
        for layout in ("3 PEs", "simulated hosts", "agents"):
            with self.subTest(layout=layout):
                job = self.start(layout, "echo ready; test $RANK = 1 && kill -STOP $$; exec sleep 60")
                self.assertEqual(job.stderr.readline().decode(),
                                 "oshrun: PE 1 is stopped by SIGSTOP [memspan-explain process-stopped]\n")
                job.terminate()
                self.assertEqual(self.finish(job, 128 + signal.SIGTERM)[1],
                                 "oshrun: the job was ended by signal 15 (Terminated); PE 1 was stopped by SIGSTOP\n")

    def test_the_time_out_names_them(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start(layout, "kill -STOP $$", "--timeout", "3")
                self.assertIn(named(ranks, "SIGSTOP").replace("were", "are").replace("was", "is"), self.finish(job, 124)[1])

    def test_in_the_background_of_the_terminal(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.in_terminal(layout, "echo text >/dev/tty; exec sleep 60",
                                       'set -m; "$@" & wait $!; echo code $?.', tostop=True)
                self.read_until_noted(job, ranks, "SIGTTOU")
                (launcher,) = children_of(job.pid)
                os.kill(launcher, signal.SIGTERM)
                job.read_until(b"code 143.", BOUND_S)
                self.assertEqual(job.code(BOUND_S), 0)
                self.expect_nothing_left()

    def test_a_stopped_agent(self):
        job = self.start("agents", "echo ready; exec sleep 60")
        read_lines(job.stdout, 3)
        for agent in children_of(job.pid):
            os.kill(agent, signal.SIGSTOP)
            until(SECONDS, "the agent is stopped", lambda agent=agent: state_of(agent) == "T")
        job.terminate()
        self.finish(job, 128 + signal.SIGTERM)

    def test_a_killed_oshrun(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start(layout, "kill -STOP $$")
                self.wait_until_stopped(ranks)
                job.kill()
                self.finish(job, -signal.SIGKILL)

    def test_control_z_is_not_reported(self):
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.in_terminal(layout, "exec sleep 60")
                self.pids(ranks)
                job.type(b"\x1a")
                self.wait_until_stopped(ranks)
                until(SECONDS, "oshrun is stopped", lambda: state_of(job.pid) == "T")
                os.kill(job.pid, signal.SIGCONT)
                until(SECONDS, "the PEs continue", lambda: all(state_of(pid) != "T" for pid in self.pids(ranks)))
                job.type(b"\x03")
                job.read_until(b"oshrun: the job was ended by signal 2 (Interrupt)\r\n", BOUND_S)
                self.assertEqual(job.code(BOUND_S), 130)
                self.assertEqual(noted(job.seen.decode()), [])
                self.expect_nothing_left()


def children_of(pid):
    """Without the guard."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split() if "memspan-guard" not in name_of(child)]


def name_of(pid):
    with open(f"/proc/{pid}/comm", encoding="ascii") as file:
        return file.read()
