# SPDX-License-Identifier: Apache-2.0
"""An oshrun that was started with blocked or ignored signals."""

import signal
import tempfile

from jobs.launcher import read_lines
from of_shells import FOR_EVER, LAYOUTS, OfShells

ENDS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)


class InheritedSignalsTest(OfShells):
    def test_no_process_starts_with_blocked_signals(self):
        def block():
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

        # Without a shell, since dash itself unblocks all signals of what it starts.
        ready = tempfile.NamedTemporaryFile(buffering=0)
        self.addCleanup(ready.close)
        ready.write(b"ready\n")
        for layout, (ranks, _) in LAYOUTS.items():
            with self.subTest(layout=layout):
                job = self.start_program(layout, "grep", "SigBlk", "/proc/self/status", preexec_fn=block)
                self.assertEqual(self.finish(job, 0)[0], "SigBlk:\t0000000000000000\n" * ranks)
            for number in ENDS:
                with self.subTest(layout=layout, number=number):
                    job = self.start_program(layout, "tail", "-n", "1", "-f", ready.name, preexec_fn=block)
                    self.assertEqual(read_lines(job.stdout, ranks), ["ready"] * ranks)
                    job.send_signal(number)
                    self.finish(job, 128 + number)

    def test_ignored_signals_stay_ignored(self):
        for layout, (ranks, _) in LAYOUTS.items():
            for number in ENDS:
                with self.subTest(layout=layout, number=number):
                    job = self.start(layout, f"trap 'echo got' USR1; echo ready; {FOR_EVER}",
                                     preexec_fn=lambda number=number: signal.signal(number, signal.SIG_IGN))
                    read_lines(job.stdout, ranks)
                    for _ in range(2):  # a second one would end the job
                        job.send_signal(number)
                        job.send_signal(signal.SIGUSR1)
                        self.assertEqual(read_lines(job.stdout, ranks), ["got"] * ranks)
                    other = signal.SIGINT if number == signal.SIGTERM else signal.SIGTERM
                    job.send_signal(other)
                    self.finish(job, 128 + other)
