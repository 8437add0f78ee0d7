# SPDX-License-Identifier: Apache-2.0
"""What on_hosts.py promises to those whose tests it runs: hosts that are apart."""

import os
import signal
import subprocess
import sys
import unittest

import jobs
from jobs.namespaces import ip
from needs import needs

HERE = os.path.dirname(os.path.abspath(__file__))
JOB = os.path.join(os.path.dirname(HERE), "support", "oshrun_on_hosts.sh")
TELL = 'echo "$RANK $(hostname) $(ls /dev/shm) $(ip -o -4 addr show eth0 | grep -o "10[.0-9]*/")"'


@needs("hosts")
class OnHostsTest(unittest.TestCase):
    def run_on_hosts(self, *command):
        return subprocess.run([sys.executable, os.path.join(HERE, "on_hosts.py"), "3", *command],
                              stdout=subprocess.PIPE, text=True, timeout=jobs.LIMIT_S, check=False,
                              env={**os.environ, "MEMSPAN_LOG_LEVEL": "ERROR"})

    def test_a_job_is_parted_among_them(self):
        ended = self.run_on_hosts("sh", "-c", 'touch /dev/shm/first; exec "$@"', "sh", "sh", JOB, jobs.OSHRUN,
                                  "-n", "4", "--simulate-hosts", "2+1+1", "sh", "-c", TELL)
        self.assertEqual(ended.returncode, 0)
        self.assertEqual(sorted(ended.stdout.splitlines()), [
            "0 host-0 first 10.78.0.1/", "1 host-0 first 10.78.0.1/", "2 host-1  10.78.0.2/", "3 host-2  10.78.0.3/"])

    def test_they_end_with_it(self):
        running = subprocess.Popen([sys.executable, os.path.join(HERE, "on_hosts.py"), "2", "sh", "-c", "echo here; exec cat"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(running.communicate)
        self.assertEqual(running.stdout.readline(), "here\n")
        self.assertIn(f"-{running.pid}", ip("netns", "list"))
        running.terminate()
        self.assertEqual(running.wait(jobs.LIMIT_S), 128 + signal.SIGTERM)
        self.assertNotIn(f"-{running.pid}", ip("netns", "list"))

    def test_the_code_of_the_command_is_theirs(self):
        self.assertEqual(self.run_on_hosts("sh", "-c", "exit 7").returncode, 7)


if __name__ == "__main__":
    unittest.main()
