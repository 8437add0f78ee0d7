# SPDX-License-Identifier: Apache-2.0
"""What the site is made of beyond its pages: the reference, links, diagrams, and the check of what was built."""

import html
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "site"))

import diagrams  # noqa: E402
import headers  # noqa: E402
import manuals  # noqa: E402
import modules  # noqa: E402
import repository  # noqa: E402


class Reference(unittest.TestCase):
    def test_a_header_shows_all_of_its_comments_and_declarations(self):
        path = ROOT / "include/memspan/transfer.h"
        page, names = headers.page(path, "memspan/transfer.h")
        declared = set(re.findall(r"\b(memspan_transfer_[a-z_]+)\(", re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)))
        self.assertGreater(len(declared), 15)
        self.assertEqual(declared - set(names), set())
        for name in declared:
            self.assertIn(f'<a id="{name}"></a>', page)
        plain = " ".join(html.unescape(page).replace("\\", "").split())
        for comment in re.findall(r"^/\* (?!SPDX|----)(.*?)\*/", path.read_text(), flags=re.S | re.M):
            words = " ".join(re.sub(r"^ \*", "", comment, flags=re.M).split())
            self.assertIn(words[:60], plain)

    def test_every_header_has_a_purpose(self):
        without = [path.name for path in (ROOT / "include").rglob("*.h") if not headers.purpose(path) and path.stat().st_size > 400]
        self.assertEqual(without, [])

    def test_a_module_shows_its_classes_and_functions(self):
        page = modules.page("memspan.kv_pool", ROOT / "python/memspan/kv_pool.py")
        for name in ("KvPool", "KvPool.put", "KvPool.__init__", "bytes_of"):
            self.assertIn(f'<a id="{name}"></a>', page)
        self.assertNotIn("_join_members", page)

    def test_every_package_is_there(self):
        names = {name for name, _ in modules.modules()}
        self.assertLessEqual({"memspan", "shmem", "mf_smem", "memfabric_hybrid", "mf_adapter", "memspan.torch.handler"}, names)


class Manuals(unittest.TestCase):
    def made_of(self, text: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "sort.1.in")
            path.write_text(f'.TH SORT 1 ""\n.SH NAME\nsort \\- puts in order\n{text}')
            return manuals.page("sort", path).partition("prints this page.\n\n")[2]

    def test_fonts_terms_and_code(self):
        options = '.SH OPTIONS\n.TP\n.BI \\-\\-by " KEY\\fR, " \\-k " KEY"\nBy this\n.IR key .\n.TP\n.B a_b\nThat.\n.PP\nEnd_of.\n'
        self.assertEqual(
            self.made_of(options),
            "## Options\n\n<dl>\n<dt><strong>--by</strong><em> KEY</em>, <strong>-k</strong><em> KEY</em></dt>\n<dd>By this <em>key</em>.</dd>\n"
            "<dt><strong>a&#95;b</strong></dt>\n<dd>That.</dd>\n</dl>\n\nEnd&#95;of.\n",
        )
        self.assertEqual(self.made_of(".SH A\n.nf\nsort <x_y\n.fi\n"), "## A\n\n```text\nsort <x_y\n```\n")
        self.assertIn("[oshrun](oshrun.md)(1), <strong>ls</strong>(1)", self.made_of(".SH SEE ALSO\n.BR oshrun (1),\n.BR ls (1)\n"))

    def test_what_is_not_known_is_an_error(self):
        for text in (".SH A\n.RS 4\nb\n", ".SH A\nb\\*(c\n"):
            with self.assertRaises(SystemExit, msg=text):
                self.made_of(text)

    def test_every_program_has_its_options(self):
        self.assertLessEqual({"oshrun", "oshcc", "memspan-info", "memspan-perf", "memspan-top"}, {name for name, _ in manuals.manuals()})
        for name, path in manuals.manuals():
            plain = html.unescape(re.sub(r"<[^>]*>", "", manuals.page(name, path)))
            options = set(re.findall(r"--[a-z][a-z-]+", path.read_text().replace("\\-", "-")))
            self.assertEqual({option for option in options if option not in plain}, set(), name)
            self.assertNotIn("## Name", plain)
            self.assertTrue(manuals.purpose(path), name)


class Links(unittest.TestCase):
    def test_a_link_to_a_source_leads_to_its_page(self):
        text = "see [it](../../src/memory/adopted_memory.h) and `[no](x.md)`\n\n```sh\necho [no](../README.md)\n```\n"
        out = repository.with_links_of_site("docs/design/0020-adopted-memory.md", "design/0020-adopted-memory.md", text)
        self.assertIn("(../files/src/memory/adopted_memory.h.md)", out)
        self.assertIn("[no](../README.md)", out)

    def test_a_readme_finds_the_pages_of_docs(self):
        out = repository.with_links_of_site("README.md", "project/readme.md", "[a](docs/cann.md#sources-in-ascendc)")
        self.assertEqual(out, "[a](../cann.md#sources-in-ascendc)")
        out = repository.with_links_of_site("README.md", "project/readme.md", "![a](docs/pictures/overview.svg)")
        self.assertEqual(out, "![a](../pictures/overview.svg)")

    def test_bars_in_code_of_a_table_are_bars(self):
        out = repository.with_bars_in_code("| a | `x\\|<y>\\._` |\n")
        self.assertNotIn("\\", out)
        self.assertEqual(html.unescape(out), "| a | <code>x|<y>\\._</code> |\n")
        self.assertEqual(repository.with_bars_in_code("`x\\|y`\n"), "`x\\|y`\n")


class Pictures(unittest.TestCase):
    def test_every_diagram_has_the_picture_of_its_text(self):
        wanted = set()
        for page in (ROOT / "docs").rglob("*.md"):
            text = page.read_text()
            wanted |= {diagrams.picture_of(b["name"], b["text"]) for b in diagrams.BLOCK.finditer(text)}
            self.assertEqual(len(diagrams.BLOCK.findall(text)), len(re.findall(r"^```mermaid$", text, re.M)), page.name)
        self.assertGreaterEqual(len(wanted), 2)
        self.assertEqual(wanted, set(diagrams.PICTURES.glob("*.svg")))


class Check(unittest.TestCase):
    def said(self, body: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            for i in range(20):
                pathlib.Path(folder, f"p{i}.html").write_text('<h1 id="here">x</h1>')
            pathlib.Path(folder, "index.html").write_text(body)
            done = subprocess.run([sys.executable, ROOT / "tools/site/check.py", folder], capture_output=True, text=True)
            return done.stderr if done.returncode else ""

    def test_what_is_wrong_is_found(self):
        self.assertEqual(self.said('<a href="p1.html#here">x</a><a href="https://example.org">x</a>'), "")
        self.assertIn("leads to no file", self.said('<a href="none.html">x</a>'))
        self.assertIn("leads to no anchor", self.said('<a href="p1.html#none">x</a>'))
        self.assertIn("loaded from a network", self.said('<script src="https://example.org/x.js"></script>'))
        self.assertIn("loaded from a network", self.said('<link rel="stylesheet" href="//fonts.example.org/x.css">'))
        self.assertIn("is no address", self.said('<a href="http:///x">x</a>'))


if __name__ == "__main__":
    unittest.main()
