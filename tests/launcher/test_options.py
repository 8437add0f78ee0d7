# SPDX-License-Identifier: Apache-2.0
"""oshrun's own options, the variables that it sets, and programs that cannot be started."""

import os
import tempfile
import unittest

from jobs.launcher import run, run_shells, strangers

NO_COUNTS = ("0", "-1", "abc", "1.5", "", "16385", "99999999999999999999")


class OptionsTest(unittest.TestCase):
    def gives(self, out, *words, **variables):
        got = run(*words, env=strangers(**variables))
        self.assertEqual(got, (0, out, ""), words)

    def refused(self, *words):
        """The one line about it."""
        code, _, errors = run(*words, env=strangers())
        self.assertEqual(code, 2, words)
        self.assertEqual(errors.count("\n"), 1, errors)
        return errors

    def test_they_end_at_the_program(self):
        words = ["-n", "2", "--label", "--timeout", "0", "--", "x"]
        code, out, _ = run("-n", "1", "sh", "-c", 'printf "%s\\n" "$*"', "sh", *words, env=strangers())
        self.assertEqual((code, out), (0, "-n 2 --label --timeout 0 -- x\n"))
        self.gives("--label\n", "-n", "1", "--", "echo", "--label")

    def test_spellings_of_the_count(self):
        for words in (["-n", "2"], ["-np", "2"], ["-n2"], ["--np", "2"], ["--np=2"]):
            self.gives("x\nx\n", *words, "echo", "x")

    def test_variables_of_the_users(self):
        values = ["A=1", "B=two words", "C=", "PROBE=inside", "A=2"]
        options = [word for value in values for word in ("--env", value)]
        script = 'echo "$A|$B|${C-unset}|$PROBE"'
        code, out, _ = run_shells(2, script, *options, env=strangers(PROBE="outside"))
        self.assertEqual((code, out), (0, "2|two words||inside\n" * 2))
        self.gives("3m\n", "-n", "1", "sh", "-c", "echo $SHMEM_SYMMETRIC_SIZE", SHMEM_SYMMETRIC_SIZE="3m")

    def test_variables_of_the_job(self):
        script = "echo $RANK $LOCAL_RANK $WORLD_SIZE ${MEMSPAN_LAUNCH%%:*}"
        code, out, _ = run_shells(2, script, "--label", env=strangers(RANK="99"))
        self.assertEqual(code, 0)
        # The last one is the version of the launch.
        self.assertRegex("\n".join(sorted(out.splitlines())), r"^\[0\] 0 0 2 (\d+)\n\[1\] 1 1 2 \1$")

    def test_version_and_help(self):
        version = r"^oshrun \(memspan\) [0-9.]+\n"
        for option, words in (("--version", version), ("--help", "^Usage: oshrun -n N ")):
            code, out, _ = run(option)
            self.assertEqual(code, 0)
            self.assertRegex(out, words)

    def test_what_makes_no_sense(self):
        for count in NO_COUNTS:
            self.assertIn("from 1 to 16384", self.refused("-n", count, "true"))
        for seconds in ("0", "-1", "x"):
            self.refused("-n", "1", "--timeout", seconds, "true")
        for words in (["--env", "novalue", "true"], ["--bind", "socket", "true"], ["--nonsense", "true"], []):
            self.refused("-n", "1", *words)
        self.refused("true")
        self.refused()


class ProgramTest(unittest.TestCase):
    def cannot_start(self, program):
        code, _, errors = run("-n", "2", program, env=strangers())
        self.assertEqual(code, 127)
        self.assertEqual(errors.count("\n"), 1, errors)
        return errors

    def script(self, name, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_one_that_is_missing(self):
        errors = self.cannot_start("./no-such-program")
        self.assertEqual(errors, 'oshrun: cannot start "./no-such-program": the file does not exist [memspan-explain program-not-found]\n')
        self.cannot_start("no-such-program-anywhere")

    def test_one_that_is_no_program(self):
        self.cannot_start(self.script("text", "hello\n"))
        path = self.script("script", "#!/no/such/interpreter\n")
        os.chmod(path, 0o755)
        self.cannot_start(path)

    def test_a_script_without_an_interpreter(self):
        path = self.script("with space/script", 'echo "script $1"\n')
        os.chmod(path, 0o755)
        code, out, _ = run("-n", "1", path, "argument", env=strangers())
        self.assertEqual((code, out), (0, "script argument\n"))
