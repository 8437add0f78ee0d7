# SPDX-License-Identifier: Apache-2.0
"""oshrun over several hosts: what its processes are told, what they print, and how jobs end."""

import os
import signal
import subprocess
import unittest

import jobs
from oshrun_hosts import BOUND_S, ENTER, SILENCE_S, OnHosts, command_of, on_hosts, read_file

FAR = os.environ["MEMSPAN_FAR"]
INFO = os.environ["MEMSPAN_INFO"]
SURVIVOR = os.environ["MEMSPAN_SURVIVOR"]
LAYOUTS = ((1, 1), (2, 2), (3, 1), (2, 1, 1))
QUIET = {"MEMSPAN_LOG_LEVEL": "ERROR"}  # no warning about programs that do not use memspan


@on_hosts
class JobsTest(OnHosts):
    def test_every_process_is_a_pe(self):
        for slots in LAYOUTS:
            with self.subTest(slots=slots):
                expected = [f"hello {rank} of {sum(slots)}" for rank in range(sum(slots))]
                self.assertEqual(self.outputs(slots, jobs.VICTIM, "hello"), expected)

    def test_they_reach_each_other(self):
        for slots in LAYOUTS:
            for case in ("pointers", "statics"):
                with self.subTest(slots=slots, case=case):
                    self.outputs(slots, FAR, case)
        for case in ("compute", "rejoin"):
            self.outputs((3, 1), FAR, case)

    def test_a_suite(self):
        self.outputs((2, 1, 1), jobs.UNITTEST, "--gtest_filter=Rma*:Atomic*:Signal*:Collective*:Static*")

    def test_between_hosts_are_messages(self):
        table = self.outputs((1, 2), INFO, "--routes")
        names = self.hosts.names
        self.assertIn("3 PEs on 2 nodes", table)
        rows = [line.split() for line in table]
        for row in (["0", names[0], "own", "message", "message"], ["1", names[1], "message", "own", "mapped"]):
            self.assertIn(row, rows)

    def test_what_the_processes_are_told(self):
        script = 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $MEMSPAN_HOST_ID $GIVEN $PWD"'
        a, b, c = self.hosts.names
        expected = [f"0 4 0 2 {a} 1 /", f"1 4 1 2 {a} 1 /", f"2 4 0 1 {b} 1 /", f"3 4 0 1 {c} 1 /"]
        options = ("--env", "GIVEN=1", "-wdir", "/")
        self.assertEqual(self.outputs((2, 1, 1), *options, "sh", "-c", script, **QUIET), expected)
        # Several programs, and fewer processes than slots: the last host has none.
        programs = ("-n", "1", "sh", "-c", "echo a $RANK", ":", "-n", "2", "sh", "-c", "echo b $LOCAL_RANK")
        self.assertEqual(self.outputs((2, 1, 1), *programs, **QUIET), ["a 0", "b 0", "b 1"])

    def test_a_host_file(self):
        path = os.path.join(self.folder, "hosts")
        a, b, c = self.hosts.names
        with open(path, "w", encoding="ascii") as file:
            file.write(f"# ours\n{a} slots=2\n\n{b}:1  # one\n{c}\n")
        code, out, errors = jobs.finish(self.start("--hostfile", path, jobs.VICTIM, "hello"))
        self.assertEqual((code, len(out.splitlines())), (0, 4), errors)

    def test_the_launcher_is_found_in_the_path(self):
        path, name = os.path.split(jobs.OSHRUN)
        words = ["env", f"PATH={path}:{os.environ['PATH']}", name, "--remote-oshrun", jobs.OSHRUN, "--remote-shell", ENTER]
        job = jobs.start([*self.hosts.inside(0), *words, "--hosts", self.spec(1, 1), jobs.VICTIM, "hello"])
        code, out, errors = jobs.finish(job)
        self.assertEqual((code, sorted(out.splitlines())), (0, ["hello 0 of 2", "hello 1 of 2"]), errors)

    def test_another_host_alone_is_a_job_on_one_host(self):
        self.assertEqual(self.outputs((0, 2), jobs.VICTIM, "hello"), ["hello 0 of 2", "hello 1 of 2"])


@on_hosts
class OutputTest(OnHosts):
    def test_it_is_live_and_labelled_and_rank_0_has_the_input(self):
        job = self.start_on((1, 1), "--label", "sh", "-c", 'echo "up $RANK"; read line; echo "got $line"',
                            stdin=subprocess.PIPE, **QUIET)
        self.assertEqual(sorted(jobs.read_line(job.stdout) for _ in range(3)), ["[0] up 0\n", "[1] got \n", "[1] up 1\n"])
        job.stdin.write("a line\n")
        job.stdin.flush()
        self.assertEqual(jobs.read_line(job.stdout), "[0] got a line\n")
        self.assertEqual(jobs.finish(job)[0], 0)

    def test_lines_of_hosts_do_not_mix(self):
        lines = 20000
        out = self.outputs((1, 1, 1), "--label", "seq", "1", str(lines), **QUIET)
        self.assertEqual(out, sorted(f"[{rank}] {i}" for rank in range(3) for i in range(1, lines + 1)))

    def test_stderr_stays_apart(self):
        code, out, errors = self.run_on((1, 1), "--label", "sh", "-c", "echo out; echo error >&2", **QUIET)
        self.assertEqual((code, sorted(out.splitlines())), (0, ["[0] out", "[1] out"]))
        self.assertEqual(sorted(errors.splitlines()), ["[0] error", "[1] error"])

    def test_much_input_comes_whole(self):
        path = os.path.join(self.folder, "input")
        with open(path, "wb") as file:
            file.write(os.urandom(3 << 20))
        for shown in (path, None):
            with self.subTest(file=shown is not None), open(path, "rb") as file:
                cat = None if shown else subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
                stdin = file if shown else cat.stdout
                # Through the other host, too: rank 0 is there.
                words = ("--hosts", f"{self.hosts.names[1]}:1,{self.hosts.names[0]}:1", "sh", "-c", "wc -c")
                out = jobs.finish(self.start(*words, stdin=stdin, **QUIET))[1]
                self.assertEqual(sorted(out.split()), ["0", str(3 << 20)])
                if cat:
                    cat.stdout.close()
                    self.assertEqual(cat.wait(jobs.LIMIT_S), 0)

    def test_a_reader_that_stands_still_stops_nothing_else(self):
        job = self.start_on((1, 1), "sh", "-c", "echo begun; exec yes", **QUIET)
        jobs.read_line(job.stdout)
        pids = jobs.marked(self.mark)
        job.send_signal(signal.SIGINT)
        job.send_signal(signal.SIGTERM)
        job.stdout.close()
        self.expect_all_ended(pids, 5)
        job.stderr.close()
        self.assertNotEqual(job.wait(jobs.LIMIT_S), 0)


@on_hosts
class EndsTest(OnHosts):
    def busy(self, slots=(2, 1, 1), **more):
        """The job and {rank: pid}."""
        job = self.start_on(slots, jobs.VICTIM, "busy", **more)
        return job, jobs.read_ready(job.stdout, sum(slots))

    def test_the_code_of_a_process_is_the_jobs(self):
        for words, code in ((("exit-early",), 5), (("global-exit", "7"), 7), (("compute-exit", "6"), 6)):
            with self.subTest(words=words):
                self.assertEqual(self.run_on((1, 1), jobs.VICTIM, *words)[0], code)
        code, _, errors = self.run_on((1, 1), "sh", "-c", "exit $((3 * RANK))", **QUIET)
        self.assertEqual(code, 3)
        self.assertRegex(errors, r"^oshrun: PE 1 \(process \d+\) exited with code 3\n$")

    def test_a_killed_process_ends_the_job(self):
        for victim in (0, 1, 2, 3):
            with self.subTest(victim=victim):
                job, pids = self.busy()
                all_of_it = jobs.marked(self.mark)
                os.kill(pids[victim], signal.SIGKILL)
                self.expect_all_ended(all_of_it)
                code, _, errors = jobs.finish(job)
                self.assertEqual(code, 128 + signal.SIGKILL, errors)
                self.assertIn(f"PE {victim} (process {pids[victim]}) was killed by signal 9", errors)
                host = self.hosts.names[(0, 0, 1, 2)[victim]]
                self.assertRegex(errors, rf"shmem_\w+: .*PE {victim} on host {host}.*(died|was cut)")

    def test_survivors_go_on_when_asked_to(self):
        code, out, errors = self.run_on((2, 1), "--keep-going", SURVIVOR)
        self.assertIn("was killed by signal 9", errors, out)
        self.assertEqual(code, 128 + signal.SIGKILL, errors)

    def test_a_killed_agent_ends_the_job(self):
        for number in range(2):
            with self.subTest(agent=number):
                job, _ = self.busy((2, 2))
                all_of_it = jobs.marked(self.mark)
                agent = sorted(self.agents())[number]
                os.kill(agent, signal.SIGKILL)
                self.expect_all_ended(all_of_it)
                code, _, errors = jobs.finish(job)
                self.assertEqual(code, 1, errors)
                self.assertRegex(errors, r'oshrun: host "[\w-]+": its agent is gone: the remote shell was killed '
                                         r"by signal 9 \(Killed\)")

    def test_a_killed_oshrun_ends_the_job(self):
        job, _ = self.busy()
        all_of_it = jobs.marked(self.mark)
        job.kill()
        self.expect_all_ended(all_of_it)
        job.communicate()

    def test_what_processes_have_started_goes_with_them(self):
        for kill in (True, False):
            with self.subTest(kill=kill):
                job = self.start_on((1, 1), "sh", "-c", "sleep 60 & echo up; wait", **QUIET)
                for _ in range(2):
                    jobs.read_line(job.stdout)
                all_of_it = jobs.marked(self.mark)
                if kill:
                    job.kill()
                else:
                    os.kill(self.agents()[0], signal.SIGKILL)
                self.expect_all_ended(all_of_it)
                job.communicate()

    def test_a_silent_agent_ends_the_job_after_the_limit(self):
        job, _ = self.busy((1, 1))
        all_of_it = jobs.marked(self.mark)
        os.kill(self.agents()[0], signal.SIGSTOP)
        self.expect_all_ended(all_of_it, SILENCE_S + 2 * BOUND_S)
        code, _, errors = jobs.finish(job)
        self.assertEqual(code, 1)
        self.assertIn("nothing was heard of it for 10 s (MEMSPAN_SILENCE_LIMIT)", errors)

    def test_a_silent_oshrun_ends_the_job_after_the_limit(self):
        job, pids = self.busy((1, 1))
        job.send_signal(signal.SIGSTOP)
        with jobs.Ends(pids.values()) as ends:
            self.assertEqual(ends.wait(SILENCE_S + 2 * BOUND_S), [])
        job.send_signal(signal.SIGCONT)
        self.assertNotEqual(jobs.finish(job)[0], 0)
        self.assertEqual(jobs.marked(self.mark), [])

    def test_signals_reach_every_host(self):
        job, _ = self.busy((1, 1))
        all_of_it = jobs.marked(self.mark)
        job.send_signal(signal.SIGINT)
        self.expect_all_ended(all_of_it)
        code, _, errors = jobs.finish(job)
        self.assertEqual(code, 128 + signal.SIGINT, errors)
        self.assertIn("oshrun: the job was ended by signal 2 (Interrupt)\n", errors)
        job = self.start_on((1, 1), "sh", "-c", "trap 'echo got; exit 0' USR1; echo up; while :; do sleep 0.02; done",
                            **QUIET)
        for _ in range(2):
            jobs.read_line(job.stdout)
        job.send_signal(signal.SIGUSR1)
        self.assertEqual(jobs.finish(job)[:2], (0, "got\ngot\n"))

    def test_the_time_out(self):
        code, _, errors = self.run_on((1, 1), "--timeout", "1", "sleep", "60", **QUIET)
        self.assertEqual(code, 124)
        self.assertIn("still running: PE 0-1 [memspan-explain job-timeout]\n", errors)
        self.assertEqual(jobs.marked(self.mark), [])

    def test_the_secret_is_in_no_command_and_no_environment(self):
        job, pids = self.busy((1, 1))
        variables = read_file(pids[1], "environ").decode().split("\0")
        segment = next(text for text in variables if text.startswith("MEMSPAN_LAUNCH=")).split(":")[3]
        with open(f"/proc/{pids[1]}/fd/{segment}", "rb") as file:
            file.seek(32)  # NodeHeader::secret
            secret = file.read(64)
        self.assertRegex(secret.decode(), "^[0-9a-f]{64}$")
        self.assertEqual(len(self.agents()), 2)
        for pid in jobs.marked(self.mark):
            self.assertNotIn(secret.decode(), " ".join(command_of(pid)))
            self.assertNotIn(secret, read_file(pid, "environ"))
        job.send_signal(signal.SIGTERM)
        jobs.finish(job)


if __name__ == "__main__":
    unittest.main()
