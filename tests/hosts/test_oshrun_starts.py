# SPDX-License-Identifier: Apache-2.0
"""oshrun over several hosts: starts that cannot be, each with one line about it, and starts by ssh."""

import os
import shutil
import signal
import subprocess
import unittest

import jobs
from jobs.namespaces import ip
from needs import needs
from oshrun_hosts import BOUND_S, SILENCE_S, OnHosts, command_of, on_hosts, parent_of

GREETING = "memspan agent"
SSHD = shutil.which("sshd", path=os.environ.get("PATH", "") + ":/usr/sbin")


@on_hosts
class RefusalsTest(OnHosts):
    def refused(self, process, code):
        """oshrun's one line about it; nothing of the job has run or is left."""
        got, out, errors = jobs.finish(process)
        self.assertEqual((got, out), (code, ""), errors)
        lines = [line for line in errors.splitlines() if line.startswith("oshrun: ")]
        self.assertEqual(len(lines), 1, errors)
        self.assertEqual(jobs.marked(self.mark), [])
        return lines[0]

    def test_lists_that_cannot_be_meant(self):
        a, b = self.hosts.names[:2]
        for words, parts in (
            (("--hosts", f"{a}:2,{b}:0"), (b, '"0"', "from 1 to 16384")),
            (("--hosts", f"{a}:2,{b}:x"), (b, '"x"', "from 1 to 16384")),
            (("--hosts", f"{a},{b},{a}"), (a, "twice")),
            (("--hosts", f"{a}:1,{b}:1", "-n", "3"), ("3", "2 slots")),
            (("--hosts", f"{a},"), ('""', "allowed are letters")),
            (("--hosts", f"{a},-oProxyCommand=x"), ('"-oProxyCommand=x"', "allowed are letters")),
            (("--hosts", f"{a},b;c"), ('"b;c"', "allowed are letters")),
            (("--hosts", f"{a},{b}", "--simulate-hosts", "2"), ("exclude",)),
            (("--hostfile", "/no/such/file"), ("/no/such/file", "No such file")),
            (("--hostfile", self.folder), (self.folder, "names no host")),
        ):
            with self.subTest(words=words):
                line = self.refused(self.start(*words, jobs.VICTIM, "hello"), 2)
                for part in parts:
                    self.assertIn(part, line)

    def test_words_of_a_host_file(self):
        path = os.path.join(self.folder, "hosts")
        for text, part in (("a slots=0", "from 1 to 16384"), ("a cpus=2", '"cpus=2"'), ("# none", "names no host")):
            with open(path, "w", encoding="ascii") as file:
                file.write(text + "\n")
            with self.subTest(text=text):
                line = self.refused(self.start("--hostfile", path, jobs.VICTIM, "hello"), 2)
                self.assertIn(part, line)

    def test_a_remote_shell_that_starts_no_oshrun(self):
        b = self.hosts.names[1]
        for text, parts in (
            ("exit 255", ("cannot reach it", "ended with code 255")),
            ("exit 127", ("--remote-oshrun",)),
            ("exit 0", ("did not answer", "ended with code 0")),
            ("kill -9 $$", ("did not answer", "killed by signal 9")),
            ("echo Welcome; sleep 60", ('said "Welcome"', GREETING)),
            (f"echo {GREETING} 0.0.1; sleep 60", (f'said "{GREETING} 0.0.1"', GREETING)),
            (f'read x; sleep 60', ("did not start there within 1 s", "MEMSPAN_INIT_TIMEOUT")),
        ):
            with self.subTest(text=text):
                shell = self.script(f'[ "$1" = {b} ] || exec ip netns exec "$@"\n{text}')
                limit = {"MEMSPAN_INIT_TIMEOUT": "1" if "within" in parts[0] else "60"}
                job = self.start_on((1, 1), jobs.VICTIM, "hello", shell=shell, **limit)
                line = self.refused(job, 1)
                for part in (f'host "{b}": ', *parts):
                    self.assertIn(part, line)

    def test_a_remote_shell_that_is_not_there(self):
        line = self.refused(self.start_on((1, 1), jobs.VICTIM, "hello", shell="no-such-shell {}"), 127)
        self.assertIn('"no-such-shell"', line)

    def test_an_unknown_host_and_a_missing_oshrun(self):
        line = self.refused(self.start("--hosts", f"{self.hosts.names[0]},no-such-host", jobs.VICTIM, "hello"), 1)
        self.assertIn('host "no-such-host"', line)
        line = self.refused(self.start_on((1, 1), "--remote-oshrun", "/no/oshrun", jobs.VICTIM, "hello"), 1)
        self.assertIn("--remote-oshrun", line)

    def test_what_is_missing_there_is_named_with_the_host(self):
        line = self.refused(self.start_on((1, 1), "./no-such-program"), 127)
        self.assertRegex(line, r'host "[\w-]+": cannot start "./no-such-program": the file does not exist')
        line = self.refused(self.start_on((1, 1), "-wdir", "/no/folder", "true"), 2)
        self.assertIn("/no/folder", line)

    def test_an_address_that_others_cannot_reach(self):
        line = self.refused(self.start_on((1, 1), jobs.VICTIM, "hello", MEMSPAN_NET="lo"), 2)
        self.assertIn('MEMSPAN_NET is "lo", a loopback address', line)
        line = self.refused(self.start_on((1, 1), jobs.VICTIM, "hello", MEMSPAN_NET="nonet0"), 1)
        self.assertIn("nonet0", line)

    def test_the_time_out_counts_the_start(self):
        job = self.start_on((1, 1), "--timeout", "1", jobs.VICTIM, "hello", shell=self.script("exec sleep 60"))
        self.assertIn("it has not started", self.refused(job, 124))

    def test_a_signal_ends_a_start(self):
        job = self.start_on((1, 1), jobs.VICTIM, "hello", shell=self.script("echo here >&2; exec sleep 60"))
        jobs.read_line(job.stderr)
        job.send_signal(signal.SIGINT)
        self.assertIn("ended by signal 2 (Interrupt) while it started", self.refused(job, 130))

    def test_a_network_can_be_chosen(self):
        self.outputs((1, 1), jobs.VICTIM, "hello", MEMSPAN_NET="eth0")


@on_hosts
@needs("sshd")
class SshTest(OnHosts):
    def setUp(self):
        super().setUp()
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{self.folder}/{name}"], check=True)
        os.makedirs("/run/sshd", exist_ok=True)  # what it gives up its rights in
        config = os.path.join(self.folder, "config")
        with open(config, "w", encoding="ascii") as file:
            file.write(f"Port 2222\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\n"
                       "StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n")
        self.server = subprocess.Popen([*self.hosts.inside(1), SSHD, "-D", "-e", "-f", config],
                                       stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.server.communicate)
        self.addCleanup(self.server.kill)
        line = self.server.stderr.readline()
        self.assertIn("Server listening", line, line)
        self.shell = (f"ssh -F /dev/null -p 2222 -i {self.folder}/user -o BatchMode=yes -o StrictHostKeyChecking=no "
                      f"-o UserKnownHostsFile=/dev/null -o LogLevel=ERROR")
        self.list = f"localhost:1,{self.hosts.addresses[1]}:2"

    def test_a_job_whose_other_host_is_reached_by_ssh(self):
        job = self.start("--hosts", self.list, "--label", jobs.VICTIM, "hello", shell=self.shell)
        code, out, errors = jobs.finish(job)
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(out.splitlines()), [f"[{rank}] hello {rank} of 3" for rank in range(3)])

    def busy(self, **more):
        """The job, {rank: pid}, and all that belongs to it."""
        job = self.start("--hosts", self.list, jobs.VICTIM, "busy", shell=self.shell, **more)
        pids = jobs.read_ready(job.stdout, 3)
        return job, pids, jobs.marked(self.mark) + [parent_of(pids[1])]

    def test_deaths_end_it(self):
        for victim in ("process", "shell", "oshrun"):
            with self.subTest(victim=victim):
                job, pids, all_of_it = self.busy()
                if victim == "process":
                    os.kill(pids[2], signal.SIGKILL)
                    self.assertEqual(jobs.finish(job)[0], 128 + signal.SIGKILL)
                elif victim == "shell":
                    os.kill(next(pid for pid in jobs.marked(self.mark) if command_of(pid)[0] == "ssh"), signal.SIGKILL)
                    code, _, errors = jobs.finish(job)
                    self.assertEqual(code, 1)
                    self.assertIn("the remote shell was killed by signal 9 (Killed)", errors)
                else:
                    job.kill()
                    job.communicate()
                self.expect_all_ended(all_of_it, 2 * BOUND_S)

    def test_a_lost_network_ends_it_on_both_sides(self):
        job, _, all_of_it = self.busy()
        ip("-n", self.hosts.names[1], "link", "set", "eth0", "down")
        self.addCleanup(ip, "-n", self.hosts.names[1], "link", "set", "eth0", "up")
        self.expect_all_ended(all_of_it, SILENCE_S + 3 * BOUND_S)
        self.assertNotEqual(jobs.finish(job)[0], 0)

    def test_a_key_that_is_refused_is_one_line(self):
        os.remove(f"{self.folder}/user.pub")
        code, _, errors = jobs.finish(self.start("--hosts", self.list, jobs.VICTIM, "hello", shell=self.shell))
        self.assertEqual(code, 1)
        self.assertIn(f'host "{self.hosts.addresses[1]}": the remote shell cannot reach it', errors)


if __name__ == "__main__":
    unittest.main()
