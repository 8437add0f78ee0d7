# SPDX-License-Identifier: Apache-2.0
"""The prose of each kind of text has at most as many hits of PATTERNS as tests/site/prose.toml records, and the record only falls.

A kind with the record 0 is checked strictly. `python3 tests/site/test_prose.py` prints all hits, with a kind only its hits,
and `--write` records the counts.
"""

import ast
import pathlib
import re
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECORD = ROOT / "tests/site/prose.toml"
PERSONS = "people|person|anyone|someone|those|users?|readers?|engineers?|authors?|programmers?|developers?|operators?"

# pattern -> what to write. "<S>" is the beginning of a sentence.
PATTERNS = {
    r"\bwhom?\b": "name the process, PE, thread or caller",
    r"\b(whoever|nobody|somebody|everybody|anybody|no one)\b": "name the process, PE, thread or caller",
    r"\b(told|tells?|telling)\b|\b(says?|said|saying) so\b": "reports, prints, returns an error",
    r"\b(is|are|was|were|be|been|has|have) (not |still |already |always )?(there|here)\b(?! (?:is|are|was)\b)": "exists, has arrived, is installed, is supported",
    r"<S>What (?![^.]*\?)": "begin with the noun or the verb; no clause as the subject",
    r"<S>Of (?!course)": "subject first",
    r"<S>Where (?![^.]*\?)|[,;] where (?:it|they|that|this|one|a|the|no|none)\b": "if, when; or the noun (\"the address of\")",
    r"\b(is|are) (?:its|his|hers|theirs|ours|yours)\b(?! \w)": "the noun that is possessed",
    r"\b(is|are|was|were|be) (?-i:none)\b(?! of)": "invalid, missing, does not exist",
    r"(?<!there )(?<!that )\b(is|are|was) no (?!longer|more|less|larger|greater|smaller|need|such|limit|way)\w+": "is not a",
    r"\b(stands?|stood) (?!for\b)|\b(lies?|lying) (?!to\b)|\bcomes? to lie\b": "is, is in, overlaps",
    r"\b(go|goes|went|gone|going) (on|by|into|with|out|over|away|for|in|from|through)\b": "continue, use, leave, or the exact verb",
    r", too\b|\btoo[.;)]|\bas well[.;,)]|\b(anew|as ever|alike)\b": "also, again, equally",
    r"\b(alone|kin|wholly|meanwhile|of its own accord|of one's own)\b": "only, similar, completely, until then",
    r"\brooms?\b(?! for)|\b(mend(s|ed)?|cures?|cured|quick(ly|er|est)?)\b": "module, fix, remedy, fast",
    r"\bthe same holds\b": "repeat the statement",
}
PATTERNS = {re.compile(pattern.replace("<S>", r"(?:\A|(?<=[.:;?!] ))"), 0 if "<S>" in pattern else re.I): remedy for pattern, remedy in PATTERNS.items()}
PERSON_WHO = re.compile(rf"\b({PERSONS}) who\b", re.I)


def paragraphs(text, lead=r"[ \t]*(?:\*|//+|#)?[ \t]?"):
    """(offset, paragraph in one line); `lead` begins a line and does not belong to it."""
    for found in re.finditer(r"(?:[^\n]*\S[^\n]*(?:\n|\Z))+", re.sub(rf"(?m)^{lead}", lambda m: " " * len(m[0]), text)):
        yield found.start(), " ".join(re.sub(r"`[^`\n]*`", "X", found[0]).split())


def of_c(text, strings=False):
    """The comments, or the strings: neighbours are one."""
    token = r'"(?:[^"\\\n]|\\.)*"'
    for found in re.finditer(rf"/\*(?P<block>.*?)\*/|(?P<lines>(?:^[ \t]*//[^\n]*\n)+)|//(?P<line>[^\n]*)|{token}(?:\s*{token})*|'(?:[^'\\\n]|\\.)'", text, re.S | re.M):
        if found.lastgroup is None:
            if strings and found[0].startswith('"'):
                yield found.start(), " ".join(re.sub(r'"\s*"', "", found[0])[1:-1].replace("\\n", " ").split())
        elif not strings:
            for offset, paragraph in paragraphs(found[found.lastgroup]):
                yield found.start() + offset, paragraph


def of_python(text, strings=False):
    docstrings, tree = set(), ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            docstrings.add(node.body[0].value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and (node in docstrings) != strings:
            start = sum(len(line) + 1 for line in text.split("\n")[: node.lineno - 1])
            for _, paragraph in paragraphs(node.value, "[ \t]*"):
                yield start, re.sub(r"``.*?``", "X", paragraph)


def of_markdown(text):
    code = re.compile(r"```.*?^```$|<!--.*?-->", re.S | re.M)
    for offset, paragraph in paragraphs(code.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text), "[ \t]*(?:[-*#>]+ )?"):
        yield offset, re.sub(r"\]\([^)]*\)", "]", paragraph)


def of_manual(text):
    yield from paragraphs(re.sub(r"\\f.|\\(?=-)", "", re.sub(r"(?ms)^\.(?:nf\n.*?^\.fi|(?:TH|SH)[^\n]*|\w+ ?)", "", text)), "[ \t]*")


def of_script(text):
    """The comment at the top, which --help prints."""
    top = re.search(r"\A(?:#[^\n]*\n)+", text)
    yield from paragraphs(top[0], r"#!?(?: SPDX.*|/usr.*)?[ \t]*") if top else ()


def in_strings(of):
    return lambda text: of(text, strings=True)


HELP = ("tools/*/options.cc", "tools/launcher/option_names.cc", "tools/kernels/main.cc", "tools/wrappers/*.in")
SCRIPTS = sorted({path.stem for path in (ROOT / "scripts").glob("*.sh")} - {"build", "install_deps", "test"})
KINDS = {
    "headers": [(of_c, "include/**/*.h")],
    "manuals": [(of_manual, "docs/man/*.in")],
    "help": [*((in_strings(of_c), pattern) for pattern in HELP), *((of_script, f"scripts/{name}.sh") for name in SCRIPTS)],
    "build scripts": [(of_script, f"scripts/{name}.sh") for name in ("build", "install_deps", "test")],
    "docstrings": [(of_python, "python/**/*.py")],
    "readme": [(of_markdown, "README.md")],
    "tutorials": [(of_markdown, "docs/start.md")],
    "messages": [(in_strings(of_c), "tools/**/*.cc"), (in_strings(of_python), "python/**/*.py")],
    "messages of src": [(in_strings(of_c), "src/**/*.cc"), (in_strings(of_c), "src/**/*.h")],
    "pages": [(of_markdown, "docs/*.md"), (of_markdown, "docs/performance/*.md"), (of_markdown, "docs/design/*.md"), (of_markdown, "docs/port/*.md"), (of_markdown, "examples/**/*.md"), (of_markdown, "CONTRIBUTING.md")],
    "comments": [(of_c, "src/**/*.h"), (of_c, "src/**/*.cc"), (of_c, "tools/**/*.h"), (of_c, "tools/**/*.cc")],
}


def hits_of(sentence):
    sentence = PERSON_WHO.sub("X", sentence)
    return [(found[0].strip(), remedy) for pattern, remedy in PATTERNS.items() for found in pattern.finditer(sentence)]


def hits(kind):
    """(place, words, remedy) of the texts of this kind."""
    for of, pattern in KINDS[kind]:
        for path in sorted(ROOT.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            for offset, sentence in of(text):
                for words, remedy in hits_of(sentence):
                    yield f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, offset) + 1}", words, remedy


class Prose(unittest.TestCase):
    maxDiff = None

    def test_hits_only_become_fewer(self):
        recorded = tomllib.loads(RECORD.read_text())
        self.assertEqual(set(recorded), set(KINDS))
        wrong = []
        for kind in KINDS:
            found = [f"{place}: \"{words}\": write {remedy}" for place, words, remedy in hits(kind)]
            if recorded[kind]:
                print(f"\n{kind}: {len(found)} warnings", end="")
            if len(found) > recorded[kind]:
                wrong += [f"{kind}: {len(found)} hits, {recorded[kind]} are recorded", *(found[:40])]
            elif len(found) < recorded[kind]:
                wrong.append(f"{kind}: {len(found)} hits are fewer than the {recorded[kind]} recorded; run python3 tests/site/test_prose.py --write")
        self.assertEqual("\n".join(wrong), "")

    def test_patterns_find_what_they_name(self):
        for sentence in ("Whoever applies it rings.", "a PE who waits", "Both tell it.", "if it is not there", "What is left is freed.", "Of a team.", "Where it begins.", "which is none", "it stands in a file", "it goes on", "for C, too", "this one alone", "a quick path"):
            self.assertEqual(len(hits_of(sentence)), 1, sentence)
        for sentence in ("A user who waits.", "There is a file.", "What is it?", "There is no limit.", "stands for it", "too late", "room for two"):
            self.assertEqual(hits_of(sentence), [], sentence)

    def test_texts_are_found(self):
        self.assertEqual([t for _, t in of_c('int a; /* One\n * two. */\n// Three\n// four.\n#define A "five " "six"\n')], ["One two.", "Three four."])
        self.assertEqual([t for _, t in of_c('f("one // " \n  "two"); // three\n', strings=True)], ["one // two"])
        self.assertEqual([t for _, t in of_python('"""One."""\nx = "two"\n')], ["One."])
        self.assertEqual([t for _, t in of_markdown("# A\n\n- one `x`\n\n```sh\ntwo\n```\n")], ["A", "one X"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        RECORD.write_text("# Hits of tests/site/test_prose.py in each kind of text. They only fall; 0 is an error from the first one on.\n" + "".join(f'"{kind}" = {sum(1 for _ in hits(kind))}\n' for kind in KINDS))
    else:
        for kind in sys.argv[1:] or KINDS:
            for place, words, remedy in hits(kind):
                print(f"{kind}: {place}: {words}")
