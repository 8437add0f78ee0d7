# SPDX-License-Identifier: Apache-2.0
"""What users of other launchers type: it works as they mean it, or is refused with what to type instead."""
import os
import socket
import tempfile
import unittest

from jobs.launcher import OSHRUN, PROBE, environment, run

NUMBERS = 'echo "$RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE"'


class HabitsTest(unittest.TestCase):
    def refused(self, *words):
        """The line about it. Nothing has run."""
        code, out, errors = run(*words, "sh", "-c", "echo has run")
        self.assertEqual((code, out), (2, ""), words)
        self.assertEqual(errors.count("\n"), 1, errors)
        self.assertTrue(errors.endswith("; see oshrun --help\n"), errors)
        return errors

    def outputs(self, *words, **more):
        code, out, errors = run(*words, **more)
        self.assertEqual(code, 0, errors)
        return sorted(out.splitlines())

    def test_an_unknown_word_with_one_dash_is_an_error(self):
        for word in ("-foo", "-hostz", "-lh", "-n2x", "-Z", "--nonsense", "-npx", "-h2"):
            self.assertIn(f'there is no option "{word}"', self.refused("-n", "2", word))

    def test_every_refusal_points_to_the_help(self):
        for words in (["-n", "0"], ["-n=x"], ["-n", "2", "--timeout", "x"],
                      ["-n", "2", "--bind-to", "socket"],
                      ["-n", "2", "--env", "x"], ["-n", "2", "--output", "loud"], ["-n", "99999"],
                      ["-n", "2", "--label=yes"], ["-n", "2", "-wdir", "/no/such/folder"], [],
                      ["-n", str(os.cpu_count() + 1), "--bind", "core"]):
            self.refused(*words)
        code, out, errors = run("-n")
        self.assertEqual((code, out), (2, ""))
        self.assertEqual(errors, "oshrun: -n needs a value; see oshrun --help\n")

    def test_the_number_of_processes(self):
        for words in (["-n", "2"], ["-n2"], ["-n=2"], ["--n=2"], ["--n", "2"], ["-np", "2"], ["-np2"],
                      ["-np=2"], ["--np=2"], ["--ntasks=2"]):
            self.assertEqual(self.outputs(*words, "echo", "x"), ["x", "x"], words)

    def test_help_and_version_are_asked_for(self):
        for word in ("-V", "--version", "-version"):
            self.assertIn("oshrun (memspan) ", self.outputs(word)[0])
        for word in ("-h", "--help", "-help"):
            self.assertIn("Starts an OpenSHMEM job, on this host or on several, and ends it as a whole.",
                          self.outputs(word))

    def test_variables(self):
        given = environment(GIVEN="1")
        words = ("-n", "1", "-x", "GIVEN", "-x", "A=2", "-x", "NOT_THERE", "sh", "-c", "echo $GIVEN $A")
        self.assertEqual(self.outputs(*words, env=given), ["1 2"])
        self.refused("-n", "1", "-x", "=2")

    def test_hosts_that_are_this_one(self):
        with tempfile.NamedTemporaryFile("w", suffix=".hosts") as file:
            file.write(f"# ours\nlocalhost slots=4\n\n{socket.gethostname()}:2\n127.0.0.1\n")
            file.flush()
            for words in (["-hosts", "localhost"], ["-H", f"localhost:2,{socket.gethostname()}"],
                          ["--host=127.0.0.1"], ["--hostfile", file.name], ["-machinefile", file.name]):
                self.assertEqual(self.outputs("-np", "2", *words, "echo", "x"), ["x", "x"], words)
        # As long as the others get no process.
        self.assertEqual(self.outputs("-np", "1", "-H", "localhost,elsewhere.example", "echo", "x"), ["x"])
        self.assertIn("No such file", self.refused("-n", "1", "--hostfile", "/no/such/file"))

    def test_words_that_change_nothing(self):
        words = ("--oversubscribe", "-oversubscribe", "--allow-run-as-root", "-genvall")
        self.assertEqual(self.outputs("-n", "1", *words, "echo", "x"), ["x"])

    def test_binding(self):
        shows = ("grep", "Cpus_allowed_list:", "/proc/self/status")
        plain = self.outputs("-n", "1", "--bind", "none", *shows)
        self.assertEqual(self.outputs("-n", "1", "--bind-to", "none", *shows), plain)
        self.assertEqual(self.outputs("-n", "1", "-bind-to", "core", *shows),
                         self.outputs("-n", "1", "--bind", "core", *shows))

    def test_labels(self):
        for word in ("--tag-output", "-tag-output", "-l", "-prepend-rank"):
            self.assertEqual(self.outputs("-n", "2", word, "echo", "x"), ["[0] x", "[1] x"])

    def test_the_folder(self):
        with tempfile.TemporaryDirectory() as folder:
            script = os.path.join(folder, "here")
            with open(script, "w", encoding="ascii") as file:
                file.write("#!/bin/sh\npwd -P\n")
            os.chmod(script, 0o755)
            real = os.path.realpath(folder)
            for word in ("-wdir", "--wdir", "-wd"):
                self.assertEqual(self.outputs("-n", "1", word, folder, "pwd", "-P"), [real])
            # A program's name is looked up from there.
            self.assertEqual(self.outputs("-n", "1", "-wdir", folder, "./here"), [real])

    def test_what_we_do_differently_is_named(self):
        self.assertIn("--env NAME=VALUE", self.refused("-n", "1", "--mca", "btl", "self"))
        self.assertIn("-n N says how many", self.refused("-n", "1", "--map-by", "core"))
        self.assertIn("-n N says how many", self.refused("-n", "1", "-ppn", "2"))
        self.assertIn("a : -n 1 b", self.refused("--app", "file"))

    def test_the_usual_numbers(self):
        self.assertEqual(self.outputs("-n", "2", "sh", "-c", NUMBERS), ["0 2 0 2", "1 2 1 2"])
        # An outer launcher's are replaced, the user's own are not.
        outer = environment(RANK="7", WORLD_SIZE="8", LOCAL_RANK="7", LOCAL_WORLD_SIZE="8")
        self.assertEqual(self.outputs("-n", "1", "sh", "-c", NUMBERS, env=outer), ["0 1 0 1"])
        self.assertEqual(self.outputs("-n", "1", "--env", "RANK=5", "sh", "-c", NUMBERS), ["5 1 0 1"])

    def test_numbers_do_not_decide_where_a_process_joins(self):
        # Ours come first, whatever an outer launcher says of where to meet.
        outer = environment(RANK="1", WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="1",
                            OMPI_COMM_WORLD_SIZE="4", PMI_SIZE="4", SLURM_STEP_NUM_TASKS="4", PMIX_RANK="0")
        code, _, errors = run("-n", "2", PROBE, "join", env=outer)
        self.assertEqual((code, errors), (0, ""))
        # A job inside a process of a job is one of its own.
        code, _, errors = run("-n", "2", OSHRUN, "-n", "2", PROBE, "join")
        self.assertEqual((code, errors.replace("\n", " ").count("PE")), (0, 0), errors)


class ProgramsTest(unittest.TestCase):
    """Several programs in one job."""

    def test_ranks_count_through_them(self):
        second = ("-n", "2", "--env", "X=3", "sh", "-c", "echo b $X $RANK of $WORLD_SIZE")
        code, out, errors = run("--label", "-n", "1", "echo", "a", ":", *second)
        self.assertEqual(code, 0, errors)
        self.assertEqual(sorted(out.splitlines()), ["[0] a", "[1] b 3 1 of 3", "[2] b 3 2 of 3"])

    def test_they_are_one_job(self):
        join = (PROBE, "join")
        code, _, errors = run("-n", "1", *join, ":", "-n", "2", *join, ":", "-n1", *join)
        self.assertEqual((code, errors), (0, ""))
        code, _, errors = run("-n", "1", PROBE, "join", ":", "-n", "1", PROBE, "exit_code")
        self.assertEqual(code, 9)
        self.assertIn("PE 1 ", errors)

    def test_a_part_without_a_number_or_a_program_is_refused(self):
        for words, reason in ((["a", ":", "b"], "-n N is missing after"),
                              (["a", ":"], "a program is missing"),
                              (["a", ":", "-n", "1"], "the program to start is missing")):
            code, out, errors = run("-n", "1", *words)
            self.assertEqual((code, out), (2, ""))
            self.assertIn(reason, errors)
            self.assertTrue(errors.endswith("; see oshrun --help\n"), errors)

    def test_two_dashes_keep_a_colon_among_the_arguments(self):
        code, out, errors = run("-n", "1", "--", "echo", "a", ":", "b")
        self.assertEqual((code, out), (0, "a : b\n"), errors)

    def test_a_missing_program_is_named(self):
        code, _, errors = run("-n", "1", "true", ":", "-n", "1", "./no-such-program")
        self.assertEqual(code, 127)
        self.assertEqual(errors, 'oshrun: cannot start "./no-such-program": the file does not exist [memspan-explain program-not-found]\n')
