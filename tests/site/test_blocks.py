# SPDX-License-Identifier: Apache-2.0
"""Every block of code in the documents is run, or says why not.

The line before a block says which:

    <!-- run: processes=2 -->                  a program, by tests/python/test_documents.py
    <!-- run: sh -->, <!-- run: sh root -->    commands, here: in an empty folder, or in the source tree
    <!-- run by: PATH -->                      by that file, which has the same commands or names the page that it runs;
                                               another page has the same commands
    <!-- not run: REASON -->

and `<!-- blocks run by: ... -->` or `<!-- blocks not run: ... -->` under a page's title says it of all its
blocks. What is not run is printed.

Commands within sentences (`bash scripts/site.sh`) and in indented lines have no such line. So they may only start a
program or a script with options that it has, and must not compile a program: that needs a block that a test runs.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?:<!-- (?P<mark>(?:not )?run(?: by)?): (?P<what>[^\n]*) -->\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.S | re.M)
OF_PAGE = re.compile(r"^<!-- blocks (?P<mark>(?:not )?run(?: by)?): (?P<what>[^\n]*) -->$", re.M)
NO_CODE = {"text", "mermaid"}
PROGRAMS = {"c", "cpp", "py", "python"}


def pages():
    found = [*ROOT.glob("*.md"), ROOT / "benchmarks/README.md"]
    found += [page for folder in ("docs", "examples", "skills") for page in (ROOT / folder).rglob("*.md")]
    return sorted(path for path in found if "out" not in path.parts)


def blocks():
    """(page, line, language, mark, what, text) of all blocks of code."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(ROOT).as_posix()
        of_page = OF_PAGE.search(text)
        for block in BLOCK.finditer(text):
            if block["language"] in NO_CODE:
                continue
            mark = block if block["mark"] or of_page is None else of_page
            line = text.count("\n", 0, block.start("language")) + 1
            yield name, line, block["language"], mark["mark"], mark["what"], block["text"]


def commands_of(text):
    """Its lines without comments."""
    return [line for line in (re.sub(r"(^| +)# .*", "", line).strip() for line in text.splitlines()) if line]


SPAN = re.compile(r"`([^`\n]+)`")
INDENTED = re.compile(r"(?<=\n\n)(?: {4}[^ \n][^\n]*\n)+")
COMPILERS = {"cc", "c++", "gcc", "g++", "clang", "clang++", "nvcc"}
MANUALS = {path.name.removesuffix(".1.in"): path for path in (ROOT / "docs/man").glob("*.1.in")}
INTERPRETERS = {"bash", "python", "python3", "source"}


def inline_commands():
    """(page, line, command) of the code spans and indented lines that are commands of this project's programs and scripts."""
    for path in pages():
        if path.name == "CHANGELOG.md" or "design" in path.parts:  # what was, and what is internal
            continue
        text = re.sub(r"^```.*?^```$", lambda block: "\n" * block[0].count("\n"), path.read_text(encoding="utf-8"), flags=re.S | re.M)
        found = [(span.start(), span[1]) for span in SPAN.finditer(text)]
        for block in INDENTED.finditer(text):
            found += [(block.start(), line.strip()) for line in block[0].splitlines()]
        for start, command in found:
            words = re.sub(r"^(?:[A-Z_]+=\S* +)+", "", re.sub(r" +# .*", "", command).replace("\\|", "|")).split()
            if len(words) > 1 and (words[0] in COMPILERS | INTERPRETERS | {"ctest"} or words[0] in MANUALS):
                yield path.relative_to(ROOT).as_posix(), text.count("\n", 0, start) + 1, words


def options_of(words):
    return [re.match(r"--?[\w-]+", word.lstrip("["))[0] for word in words if re.match(r"\[?--?[a-z]", word)]


def unknown(path, words):
    """The options that the file's text does not have. A script that takes any option of a shared parser names that file."""
    text = path.read_text(encoding="utf-8").replace("\\-", "-")
    return [option for option in options_of(words) if not re.search(rf"(?<![\w-]){re.escape(option)}\b", text) and f'"{option.lstrip("-")}"' not in text]


def fault_of(words):
    """Why the command cannot work, or None."""
    program, *rest = words
    if program in COMPILERS:
        return "compiles a program: write a block that a test runs" if any(word.startswith(("-l", "-o")) for word in rest) else None
    if program in INTERPRETERS and re.fullmatch(r"(?:scripts|tests|benchmarks|tools|packaging|examples)/\S+", rest[0]):
        script = ROOT / rest[0]
        if not script.is_file():
            return f"{rest[0]} does not exist"
        stop = next((i for i, word in enumerate(rest) if word in ("ctest", "pytest")), len(rest))
        unread = unknown(script, rest[1:stop])
        return f"{rest[0]} has no {unread[0]}" if unread else None
    if rest[0] == "-m" and len(rest) > 1 and rest[1].startswith("memspan"):
        module = ROOT / "python" / rest[1].replace(".", "/")
        source = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
        if not source.is_file():
            return f"{rest[1]} is no program"
        unread = unknown(source, rest[2:])
        return f"{rest[1]} has no {unread[0]}" if unread else None
    if program in MANUALS:
        stop = next((i for i, word in enumerate(rest) if word in MANUALS or word == "python" or ("/" in word and i > 0)), len(rest))
        unread = [] if program.startswith(("osh", "memspan-kernels")) and program != "oshrun" else unknown(MANUALS[program], rest[:stop])
        return f"{program}(1) has no {unread[0]}" if unread else None
    return None


def is_run_by(path, page, text):
    """Whether the file has the commands of the block, or is a test that names the page: by its path, an example's by its
    folder, the README by its name."""
    shown = (ROOT / path).read_text(encoding="utf-8")
    if path != page and all(command in shown for command in commands_of(text)):
        return True
    name = page.removesuffix("/README.md")
    return not path.endswith(".md") and (name in shown or (page == "README.md" and "readme" in shown.lower()))


class Blocks(unittest.TestCase):
    maxDiff = None

    def test_each_is_run_or_says_why_not(self):
        count, not_run, wrong = 0, [], []
        for page, line, language, mark, what, text in blocks():
            count += 1
            where = f"{page}:{line} ({language})"
            if mark is None:
                wrong.append(f"{where}: no line says how it is run")
            elif mark == "not run":
                not_run.append(f"{where}: {what}")
            elif mark == "run by" and not (ROOT / what).is_file():
                wrong.append(f"{where}: {what} is not there")
            elif mark == "run by" and not is_run_by(what, page, text):
                wrong.append(f"{where}: {what} has not these commands, and does not name the page")
            elif mark == "run" and language not in PROGRAMS and not what.startswith("sh"):
                wrong.append(f"{where}: nothing runs {language} by \"{what}\"")
        print(f"\n{count} blocks of code, {len(not_run)} of them not run:")
        print("\n".join(f"  {line}" for line in not_run))
        self.assertGreater(count, 60)
        self.assertEqual("\n".join(wrong), "")

    def test_who_runs_a_block_has_to_have_it(self):
        with tempfile.TemporaryDirectory() as folder:
            script, page = f"{folder}/test.sh", f"{folder}/page.md"
            pathlib.Path(script).write_text("oshcc -o ring ring.c && oshrun -n 4 ./ring  # docs/start.md, examples/pi, of_readme\n")
            pathlib.Path(page).write_text("As in docs/start.md:\n\n```sh\noshrun -n 4 ./ring\n```\n")
            self.assertTrue(is_run_by(script, "docs/other.md", "# four of them\noshrun -n 4 ./ring   # in a ring\n"))
            self.assertFalse(is_run_by(script, "docs/other.md", "oshrun -n 4 ./ring\noshrun -n 5 ./ring\n"))
            for named in ("docs/start.md", "examples/pi/README.md", "README.md"):
                self.assertTrue(is_run_by(script, named, "oshrun -n 5 ./ring\n"), named)
            self.assertFalse(is_run_by(script, "examples/sort/README.md", "oshrun -n 5 ./ring\n"))
            self.assertTrue(is_run_by(page, "docs/start.md", "oshrun -n 4 ./ring\n"))
            self.assertFalse(is_run_by(page, "docs/start.md", "oshrun -n 5 ./ring\n"))
            self.assertFalse(is_run_by(page, page, "oshrun -n 4 ./ring\n"))

    def test_commands_are_well_formed(self):
        for page, line, language, _, _, text in blocks():
            if language == "sh":
                done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True)
                self.assertEqual(done.returncode, 0, f"{page}:{line}: {done.stderr}")

    def test_commands_in_sentences_name_what_exists(self):
        found = list(inline_commands())
        wrong = [f"{page}:{line}: {' '.join(words)}: {fault_of(words)}" for page, line, words in found if fault_of(words)]
        self.assertGreater(len(found), 120)
        self.assertEqual("\n".join(wrong), "")

    def test_programs_are_in_blocks(self):
        code = re.compile(r"^ {4}(?:\w+ = |(?:import|from|#include|for|if) |\w+(?:\.\w+)*\([^)]*\);?$)", re.M)
        found = []
        for path in pages():
            text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
            found += [f"{path.relative_to(ROOT)}: {line[0].strip()}" for block in INDENTED.finditer(text) for line in code.finditer(block[0])]
        self.assertEqual(found, [], "indented programs have no line that says how they are run")

    def test_wrong_commands_in_sentences_are_found(self):
        for command, fault in (
            ("cc -o pool pool.c -lmf_smem", "compiles a program"),
            ("bash scripts/no_such.sh", "does not exist"),
            ("bash scripts/site.sh --nonsense", "has no --nonsense"),
            ("oshrun -n 2 --nonsense ./a", "has no --nonsense"),
            ("python -m memspan.nonsense", "is no program"),
            ("python -m memspan.kv_pool --nonsense", "has no --nonsense"),
        ):
            self.assertIn(fault, fault_of(command.split()) or "", command)
        for command in ("bash scripts/site.sh --out FOLDER", "oshrun -n 2 ./a --nonsense", "memspan-perf list", "gcc -c a.c"):
            self.assertIsNone(fault_of(command.split()), command)

    def test_commands_in_sentences_that_need_nothing_run(self):
        programs = ROOT / "build/bin"
        if not (programs / "memspan-perf").exists() or not (programs / "memspan-info").exists():
            self.skipTest("build/bin has no programs")
        needs_nothing = re.compile(r"oshrun --version|memspan-perf list(?: \w+)?|oshrun -n \d memspan-info --routes")
        commands = {" ".join(words) for _, _, words in inline_commands() if needs_nothing.fullmatch(" ".join(words))}
        self.assertGreaterEqual(len(commands), 4)
        for command in sorted(commands):
            path = f"{programs}{os.pathsep}{os.environ['PATH']}"
            done = subprocess.run(command.split(), env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 0, f"{command}: {done.stdout}{done.stderr}")

    def test_ctest_in_sentences_finds_tests(self):
        if not (ROOT / "build/tests/CTestTestfile.cmake").is_file():
            self.skipTest("build/ has no tests")
        listed = subprocess.run(["ctest", "--test-dir", "build", "-N"], cwd=ROOT, capture_output=True, text=True).stdout
        names = re.findall(r"Test +#\d+: (\S+)", listed)
        patterns = {words[words.index("-R") + 1].strip("'") for _, _, words in inline_commands() if words[0] == "ctest" and "-R" in words}
        missing = [pattern for pattern in sorted(patterns - {"NAME"}) if not any(re.search(pattern, name) for name in names)]
        self.assertGreater(len(patterns), 15)
        self.assertEqual(missing, [])

    def test_commands_do_what_they_say(self):
        with tempfile.TemporaryDirectory() as work:
            ran = 0
            for page, line, language, mark, what, text in blocks():
                if mark != "run" or language != "sh":
                    continue
                folder = pathlib.Path(work, page.replace("/", "_"))  # blocks of a page follow each other
                folder.mkdir(exist_ok=True)
                done = subprocess.run(
                    ["bash", "-euo", "pipefail", "-c", text],
                    cwd=ROOT if "root" in what.split() else folder,
                    env={**os.environ, "HOME": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
                    capture_output=True,
                    text=True,
                    timeout=120,
                )
                self.assertEqual(done.returncode, 0, f"{page}:{line}: {done.stderr[-2000:]}")
                ran += 1
            self.assertGreaterEqual(ran, 2)
            self.look_at_secured(pathlib.Path(work, "docs_secure.md"))

    def look_at_secured(self, folder):
        """What docs/secure.md makes can be used: modes, and a certificate that the authority has signed."""
        self.assertEqual((folder / "memspan.secret").stat().st_mode & 0o777, 0o600)
        self.assertEqual((folder / "me.key").stat().st_mode & 0o777, 0o600)
        done = subprocess.run(["openssl", "verify", "-CAfile", "ca.pem", "me.pem"], cwd=folder, capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout.strip()), (0, "me.pem: OK"), done.stderr)
        names = subprocess.run(["openssl", "x509", "-in", "me.pem", "-noout", "-ext", "subjectAltName"], cwd=folder, capture_output=True, text=True)
        self.assertIn("urn:memspan:job:train:rank:0", names.stdout)


if __name__ == "__main__":
    unittest.main()
