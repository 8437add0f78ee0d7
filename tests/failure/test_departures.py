# SPDX-License-Identifier: Apache-2.0
"""Departures that are no deaths (exec, exit(0), an early shmem_finalize) are told to those who wait, and
members of a collective that do not do alike are found without SHMEM_DEBUG."""

import os
import re
import unittest

import jobs

PROGRAM = os.environ["MEMSPAN_DEPARTURES"]
BOUND_S = 1.0

WORDS = {
    "exec": "left the job without shmem_finalize, as exec",
    "fork-exec": "left the job without shmem_finalize, as exec",
    "exit": "ended (exit or the return of main) without shmem_finalize",
    "finalize": "called shmem_finalize",
}
CALLS = {
    "barrier": "shmem_barrier_all",
    "reduce": "shmem_long_sum_reduce",
    "wait": "shmem_long_wait_until",
    "finalize": "shmem_finalize",
}


class Job:
    """A job of the program, under oshrun or by hand; its stdin stays open until close()."""

    def __init__(self, launch, ranks, *arguments, hosts="1", **environment):
        # A pipe that nobody writes to: the process that is no member any more reads it.
        self.input, self.writer = os.pipe()
        command = [PROGRAM, *map(str, arguments)]
        if launch == "oshrun":
            reader = "exec 0<&9; exec \"$@\""  # oshrun gives its own stdin to rank 0 only
            command = [jobs.OSHRUN, "-n", str(ranks), "--simulate-hosts", hosts, "--timeout", "60", "sh", "-c",
                       reader, "sh", *command]
            self.processes = [self.start(command, environment)]
            self.pids = jobs.read_ready(self.processes[0].stdout, ranks)
        else:
            port = jobs.free_port()
            command = ["sh", "-c", "exec 0<&9; exec \"$@\"", "sh", *command]
            meeting = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            self.processes = [
                self.start(command, {**environment, **meeting, "RANK": str(rank)}) for rank in range(ranks)
            ]
            self.pids = {}
            for process in self.processes:
                self.pids.update(jobs.read_ready(process.stdout, 1))

    def start(self, command, environment):
        return jobs.start(
            ["bash", "-c", f"exec 9<&{self.input}; exec \"$@\"", "bash", *command], pass_fds=[self.input],
            **environment)

    def close(self):
        """Ends what left, and gives [(exit code, stdout, stderr)]."""
        os.close(self.writer)
        os.close(self.input)
        return [jobs.finish(process) for process in self.processes]


def text_of(endings):
    return "".join(out + errors for _, out, errors in endings)


class DeparturesTest(unittest.TestCase):
    def check(self, launch, ranks, who, how, call):
        watch = jobs.Stopwatch()
        job = Job(launch, ranks, "leave", who, how, call)
        others = [pid for rank, pid in job.pids.items() if rank != who]
        with jobs.Ends(others) as ends:
            left = ends.wait(10)
        seconds = watch.seconds()
        text = text_of(job.close())
        self.assertEqual(left, [], text)
        self.assertLess(seconds, 5 * BOUND_S, text)
        for rank in job.pids:
            if rank == who:
                continue
            line = rf"PE {rank}: {CALLS[call]}: PE {who} \(process {job.pids[who]}\) {re.escape(WORDS[how])}"
            self.assertRegex(text, line)
            waited = re.search(line + r".* waited ([\d.]+) s", text)
            self.assertLess(float(waited[1]), BOUND_S, text)

    def test_exec(self):
        for launch in ("oshrun", "by hand"):
            for who, how, call in ((1, "exec", "barrier"), (1, "exec", "wait"), (0, "exec", "barrier"),
                                   (1, "fork-exec", "reduce"), (2, "exec", "finalize")):
                # By hand those who are not rank 0 watch rank 0, and rank 0 the others.
                with self.subTest(launch=launch, who=who, how=how, call=call):
                    self.check(launch, 3, who, how, call)

    def test_exit_and_early_finalize(self):
        for launch in ("oshrun", "by hand"):
            for ranks, how, call in ((2, "exit", "barrier"), (3, "exit", "reduce"), (2, "exit", "wait"),
                                     (4, "exit", "wait"),
                                     (3, "finalize", "barrier"), (2, "finalize", "wait")):
                with self.subTest(launch=launch, ranks=ranks, how=how, call=call):
                    self.check(launch, ranks, ranks - 1, how, call)

    def test_who_waits_for_anybodys_store_hears_of_an_exit(self):
        """Another PE may still store the word, so the wait goes on; one line names who will not. That one
        may be on another host, while all of this one wait."""
        for hosts in ("1", "2+1"):
            with self.subTest(hosts=hosts):
                job = Job("oshrun", 3, "leave", 1, "exit", "served", hosts=hosts)
                line = ""
                while "nothing comes from there" not in line:
                    line = job.processes[0].stderr.readline()
                    self.assertNotEqual(line, "", "no line about the exit")
                self.assertRegex(line, r"PE 0.*: shmem_long_wait_until waits, and PE 1( on host sim-0)? "
                                       r"\(process \d+\) ended \(exit")
                self.assertEqual([code for code, _, _ in job.close()], [0])

    def test_exit_is_a_finalize_where_nobody_needs_more(self):
        job = Job("oshrun", 3, "leave", 1, "exit", "finalize")
        self.assertEqual([code for code, _, _ in job.close()], [0])

    def test_exec_before_the_start_and_after_the_end_is_none(self):
        chain = "exec sh -c 'exec \"$0\" hello && true'"
        job = jobs.start([jobs.OSHRUN, "-n", "2", "--timeout", "30", "sh", "-c", chain.replace("$0", jobs.VICTIM)])
        code, out, errors = jobs.finish(job)
        self.assertEqual((code, out.count("of 2")), (0, 2), errors)
        after = [jobs.OSHRUN, "-n", "2", "--timeout", "30", "sh", "-c", f"{jobs.VICTIM} hello; exec true"]
        self.assertEqual(jobs.finish(jobs.start(after))[0], 0)

    def test_a_second_finalize_is_a_warning(self):
        job = Job("oshrun", 2, "finalize-twice")
        [(code, out, errors)] = job.close()
        self.assertEqual((code, out.count("fine")), (0, 2), errors)
        self.assertEqual(errors.count("shmem_finalize: called again"), 2, errors)


class UnlikeTest(unittest.TestCase):
    """One of the members at least ends with a line that has both values."""

    def unlike(self, words, *arguments):
        job = Job("oshrun", len(arguments) - 2 if arguments[0] == "unlike" else 2, *arguments)
        [(code, out, errors)] = job.close()
        self.assertNotEqual(code, 0, out + errors)
        for word in words:
            self.assertRegex(errors, word)

    def test_counts(self):
        # In the flags, by the eager buffer, by slices or pushes, and two of them mixed.
        counts = ((1, 2), (1, 100), (100, 101), (100, 3000), (3000, 3001))
        for call in ("reduce", "broadcast", "fcollect", "alltoall", "alltoalls", "scan"):
            for pair in counts:
                with self.subTest(call=call, counts=pair):
                    bytes_of = [8 * count for count in pair]
                    sides = [rf"{bytes_of[0]} here and {bytes_of[1]} on PE 1",
                             rf"{bytes_of[1]} here and {bytes_of[0]} on PE 0"]
                    self.unlike([rf"shmem_long_\w+: the size of the elements in bytes is ({'|'.join(sides)})"],
                                "unlike", call, *pair)

    def test_one_of_many_differs(self):
        for odd in range(5):
            counts = [7 if rank == odd else 6 for rank in range(5)]
            with self.subTest(odd=odd):
                self.unlike(["the size of the elements in bytes is (48|56) here and (56|48)"],
                            "unlike", "reduce", *counts)

    def test_roots(self):
        self.unlike([r"PE_root is [01] here and [01] on PE"], "roots", 0, 1)

    def test_a_collective_against_a_barrier(self):
        self.unlike(["the call is a reduction here and another one on PE 1"], "unlike", "reduce", 3, "-")


if __name__ == "__main__":
    unittest.main()
