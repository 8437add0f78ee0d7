# SPDX-License-Identifier: Apache-2.0
"""The reference of the programs: a page for each manual page of docs/man/.

They use few of roff's requests: headings, paragraphs, terms with what they mean, fonts, and text that stays as it is.
Another request is an error, so that nothing is left out of a page.
"""

import pathlib
import re

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "man"
_TAGS = {"B": "strong", "I": "em"}
_WORD = re.compile(r'"((?:[^"]|"")*)"|((?:\\ |\S)+)')
_ESCAPES = {"\\-": "-", "\\(dq": '"', "\\ ": "\u00a0", "\\&": ""}


def manuals() -> list[tuple[str, pathlib.Path]]:
    """(program, file) of all manual pages."""
    return [(path.name.removesuffix(".1.in"), path) for path in sorted(FOLDER.glob("*.1.in"))]


def _plain(text: str) -> str:
    out = re.sub(r"\\(?:\(dq|[- &])", lambda escape: _ESCAPES[escape[0]], text)
    if "\\" in out:
        raise SystemExit(f"manuals: an escape that is not known: {text}")
    return out


def _literal(text: str) -> str:
    """Text in which Markdown and HTML see no marks."""
    return re.sub(r"[&<>`*_\[\]|\\#~]", lambda sign: f"&#{ord(sign[0])};", _plain(text))


def _in_font(text: str, font: str) -> str:
    """The text as HTML, with the fonts that it changes to by itself."""
    pieces = re.split(r"\\f([BIRP])", text)
    out = ""
    for font, piece in zip([font, *pieces[1::2]], pieces[::2]):
        tag = _TAGS.get(font)
        body = _literal(piece)
        out += f"<{tag}>{body}</{tag}>" if tag and body.strip() else body
    return out


def _words(arguments: str) -> list[str]:
    return [quoted.replace('""', '"') if quoted or not word else word for quoted, word in _WORD.findall(arguments)]


def _of_fonts(request: str, arguments: str) -> str:
    words = _words(arguments)
    if len(request) == 1:
        return _in_font(" ".join(words), request)
    return "".join(_in_font(word, request[i % 2]) for i, word in enumerate(words))


class _Page:
    """Lines of roff, one after the other, as Markdown with HTML for terms."""

    def __init__(self):
        self.out: list[str] = []
        self.text: list[str] = []  # of the paragraph or meaning so far
        self.term: str | None = None  # whose meaning it is; "" while it is still to come
        self.terms: list[str] = []
        self.code: list[str] | None = None

    def end_paragraph(self) -> None:
        text = " ".join(self.text).replace("<br> ", "<br>\n")
        self.text = []
        if self.term is not None:
            self.terms.append(f"<dt>{self.term}</dt>\n<dd>{text}</dd>")
            self.term = None
        elif text:
            self.end_terms()
            self.out.append(text)

    def end_terms(self) -> None:
        if self.terms:
            self.out.append("<dl>\n" + "\n".join(self.terms) + "\n</dl>")
        self.terms = []

    def add_text(self, text: str) -> None:
        if self.term == "":
            self.term = text
        else:
            self.text.append(text)

    def request(self, name: str, arguments: str) -> None:
        if name in ("SH", "PP", "TP", "nf"):
            self.end_paragraph()
            if name != "TP":
                self.end_terms()
        if name == "SH":
            title = " ".join(_words(arguments))
            self.out.append(f"## {title if title == 'JSON' else title.capitalize()}")
        elif name == "TP":
            self.term = ""
        elif name == "nf":
            self.code = []
        elif name == "br":
            self.text.append("<br>")
        elif re.fullmatch(r"[BI]|[BIR]{2}", name):
            self.add_text(_of_fonts(name, arguments))
        elif name not in ("TH", "PP"):
            raise SystemExit(f"manuals: a request that is not known: .{name} {arguments}")

    def line(self, line: str) -> None:
        if self.code is not None and line == ".fi":
            self.out.append("```text\n" + "\n".join(self.code) + "\n```")
            self.code = None
        elif self.code is not None:
            self.code.append(_plain(line))
        elif line.startswith("."):
            name, _, arguments = line[1:].partition(" ")
            self.request(name, arguments)
        elif line:
            self.add_text(_in_font(line, "R"))

    def whole(self) -> str:
        self.end_paragraph()
        self.end_terms()
        return "\n\n".join(self.out) + "\n"


def _name_line(text: str) -> str:
    return text.split(".SH NAME\n", 1)[1].split("\n", 1)[0]


def purpose(path: pathlib.Path) -> str:
    return _literal(_name_line(path.read_text(encoding="utf-8")).partition(" \\- ")[2])


def page(program: str, path: pathlib.Path) -> str:
    text = path.read_text(encoding="utf-8")
    name = _name_line(text)
    made = _Page()
    for line in text.split("\n"):
        made.line(line)
    known = {name for name, _ in manuals()}
    heading, link = f"## Name\n\n{_in_font(name, 'R')}\n\n", r"<strong>([a-z-]+)</strong>\(1\)"
    whole = made.whole().replace(heading, f"{_in_font(name, 'R')}\n\n`man {program}` prints this page.\n\n")
    body = re.sub(link, lambda other: f"[{other[1]}]({other[1]}.md)(1)" if other[1] in known else other[0], whole)
    return f"# {program}\n\n{body}"
