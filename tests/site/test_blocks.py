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
            self.assertGreaterEqual(ran, 3)
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
