# SPDX-License-Identifier: Apache-2.0
"""Which file of the source tree is which page of the site, and what a relative link means there.

Pages of docs/ keep their place. What lies elsewhere and is linked to becomes a page, too: a README or
another text under project/, a source file under files/, as it stands. So no link leads out of the site.
"""

import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Texts at the root of the source tree.
_NAMED = {
    "README.md": "project/readme.md",
    "CHANGELOG.md": "project/changelog.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
    "ROADMAP.md": "project/roadmap.md",
    "AGENTS.md": "project/agents.md",
}
_LANGUAGES = {".cc": "cpp", ".h": "cpp", ".c": "c", ".py": "python", ".sh": "sh", ".yaml": "yaml", ".toml": "toml"}
_FENCED = re.compile(r"^(?P<fence>`{3,}|~{3,})[^\n]*\n.*?^(?P=fence)[ \t]*$", flags=re.S | re.M)
_LINK = re.compile(r"(?<!\\)\]\((?P<target>[^()\s]+)\)")


def page_of(path: str) -> str:
    """The page that shows a file of the source tree."""
    if path.startswith("docs/") and path.endswith((".md", ".svg", ".json")):
        return path.removeprefix("docs/")
    if path in _NAMED:
        return _NAMED[path]
    if path.endswith("/README.md"):
        return f"project/{path.removesuffix('/README.md')}.md"
    if path.endswith(".md"):
        return f"project/{path}"
    return f"files/{path}.md"


def outside_code(text: str):
    """(is code, piece) of all pieces of a text."""
    end = 0
    for block in _FENCED.finditer(text):
        yield False, text[end : block.start()]
        yield True, block[0]
        end = block.end()
    yield False, text[end:]


def _target(path: str, link: str) -> tuple[str, str] | None:
    """The file of the source tree that a relative link in `path` means, and its anchor."""
    if re.match(r"[a-z][a-z0-9+.-]*:", link) or link.startswith("#"):
        return None
    target, _, anchor = link.partition("#")
    found = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if (ROOT / found).is_dir() and (ROOT / found / "README.md").is_file():
        found += "/README.md"
    return found, anchor


def linked_files(path: str, text: str) -> set[str]:
    """The files of the source tree that a text links to. A dead link is left to the build, which warns."""
    found = set()
    for is_code, piece in outside_code(text):
        for link in () if is_code else _LINK.finditer(piece):
            target = _target(path, link["target"])
            if target and (ROOT / target[0]).exists():
                found.add(target[0])
    return found


def with_links_of_site(path: str, page: str, text: str) -> str:
    """A text of the source tree with the links that it has as a page."""

    def link_of_site(link: re.Match) -> str:
        target = _target(path, link["target"])
        if target is None or not (ROOT / target[0]).exists():
            return link[0]
        to = os.path.relpath(page_of(target[0]), os.path.dirname(page) or ".")
        return f"]({to}{'#' if target[1] else ''}{target[1]})"

    return "".join(
        piece if is_code else _LINK.sub(link_of_site, piece) for is_code, piece in outside_code(text)
    )


def with_bars_in_code(text: str) -> str:
    r"""`a\|b` in a row of a table is a|b to GitHub, and to MkDocs only when it is written as HTML."""

    def code(span: re.Match) -> str:
        if "\\|" not in span[1]:
            return span[0]
        plain = span[1].replace("\\|", "|")
        return "<code>" + re.sub(r"[^\w\s]", lambda sign: f"&#{ord(sign[0])};", plain).replace("_", "&#95;") + "</code>"

    def row(line: re.Match) -> str:
        return re.sub(r"`([^`\n]+)`", code, line[0])

    return "".join(piece if is_code else re.sub(r"^\|.*\|$", row, piece, flags=re.M) for is_code, piece in outside_code(text))


def page_text(path: str) -> str:
    """What a page shows of a file outside of docs/; links are still those of the source tree."""
    if (ROOT / path).is_dir():
        files = sorted(file.name for file in (ROOT / path).iterdir() if file.is_file())
        return f"# {path}/\n\n" + "".join(f"- [{name}]({path.split('/')[-1]}/{name})\n" for name in files)
    text = (ROOT / path).read_text(encoding="utf-8")
    if path.endswith(".md"):
        return text
    language = _LANGUAGES.get(pathlib.Path(path).suffix, "text")
    return f"# {path}\n\n````{language}\n{text.rstrip()}\n````\n"
