# SPDX-License-Identifier: Apache-2.0
"""The reference of C and C++: a page for each installed header.

A header of memspan is a contract: what a comment says holds for the declarations below it, until the next
comment or an empty line. A page shows just that: comments as text, declarations as code, and nothing is
left out but include guards and the like. Each name that is declared has an anchor.
"""

import html
import pathlib
import re
import textwrap

_NOISE = re.compile(
    r"^(?:#pragma once|#include .*|#ifndef MEMSPAN_\w+_H|#define MEMSPAN_\w+_H|"
    r"#endif */[*/] MEMSPAN_\w+_H.*|#ifdef __cplusplus|extern \"C\" \{|\}  ?/[*/] extern \"C\".*)$"
)
_COMMENT = re.compile(r"/\*.*?\*/[ \t]*\n|(?://[^\n]*\n)+", flags=re.S)
_TITLE = re.compile(r"^-{2,} *(?P<title>[^\n]*?) *-*$", flags=re.M)
# A function: a name before a bracket, at the beginning of a declaration of C.
_DECLARED = re.compile(r"\b([a-z_]\w{3,})\(")
_OTHER_NAMES = re.compile(r"^(?:#define|struct|enum(?: class)?|class|template|using)\s+(\w{4,})")
_TYPEDEF = re.compile(r"^typedef\b.*?(?:\(\*(\w+)\)|\b(\w+);)|^\} (\w+);")


def _prose(comment: str) -> str:
    if comment.startswith("/*"):
        lines = comment.strip()[2:-2].split("\n")
        lines = [re.sub(r"^ \*? ?", "", line.rstrip()) if i else line.strip() for i, line in enumerate(lines)]
    else:
        lines = [re.sub(r"^// ?", "", line) for line in comment.rstrip().split("\n")]
    text = "\n".join(lines).strip()
    return re.sub(r"^SPDX-License-Identifier:.*\n*", "", text).strip()


def _markdown(text: str) -> str:
    """Prose of a comment: drawings and lists that are set in stay as they are."""
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", text):
        lines = paragraph.split("\n")
        if any(line.startswith("  ") and line.strip() and not line.strip().startswith("- ") for line in lines):
            paragraphs.append("```text\n" + textwrap.dedent(paragraph).rstrip(" .\n") + "\n```")
        else:
            pieces = re.split(r"(`[^`]*`)", paragraph)
            paragraphs.append(
                "".join(p if p.startswith("`") else re.sub(r"([_*\[\]\\])", r"\\\1", html.escape(p, quote=False)) for p in pieces)
            )
    return "\n\n".join(paragraphs)


def declared_names(code: str) -> list[str]:
    names = []
    for line in re.sub(r"\([^()]*\)", "()", code).split("\n"):
        if line.startswith((" ", "\t")) or (line.startswith("#") and not line.startswith("#define")):
            continue
        found = _TYPEDEF.search(line) if line.startswith(("typedef", "}")) else _DECLARED.search(line) or _OTHER_NAMES.search(line)
        name = next(filter(None, found.groups()), "") if found else ""
        if name and "##" not in line and name not in ("sizeof", "static_assert", "__attribute__", "decltype"):
            names.append(name)
    return names


def _pieces(text: str):
    """('comment' or 'code', text) of a header's pieces: only comments at the beginning of a line part it."""
    end = 0
    for comment in re.finditer(rf"^(?:{_COMMENT.pattern})", text, flags=re.S | re.M):
        yield "code", text[end : comment.start()]
        yield "comment", comment[0]
        end = comment.end()
    yield "code", text[end:]


def _code(text: str) -> str:
    lines = [line for line in text.split("\n") if not _NOISE.match(line)]
    code = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    # What is left of the brackets of `extern "C"` and of the guard.
    return re.sub(r"\n*(?:^\}\n)?^#endif[^\n]*\s*\Z", "", code, flags=re.M).strip("\n") if code.endswith("#endif") else code


def page(path: pathlib.Path, name: str) -> tuple[str, list[str]]:
    """The page of a header, and the names that have an anchor there."""
    out = [f"# `<{name}>`"]
    known: set[str] = set()
    names = []
    text = re.sub(r'^#ifdef __cplusplus\n(?:extern "C" \{|\})\n#endif\n', "", path.read_text(encoding="utf-8"), flags=re.M)
    for kind, piece in _pieces(text):
        if kind == "comment":
            prose = _prose(piece)
            title = _TITLE.search(prose)
            if title:
                out.append("## " + title["title"][:1].upper() + title["title"][1:])
                prose = (prose[: title.start()] + prose[title.end() :]).strip()
            if prose:
                out.append(_markdown(prose))
            continue
        code = _code(piece)
        if not re.search(r"^(?!#(?:if|ifdef|ifndef|elif|else|endif)\b|\}\s*$)\S", code, flags=re.M):
            continue
        new = [n for n in declared_names(code) if n not in known]
        known.update(new)
        names += new
        anchors = "".join(f'<a id="{n}"></a>' for n in dict.fromkeys(new))
        if anchors:
            out.append(anchors)
        out.append(f"```cpp\n{code}\n```")
    return "\n\n".join(out) + "\n", list(dict.fromkeys(names))


def purpose(path: pathlib.Path) -> str:
    """The first sentence of a header's first comment."""
    first = _COMMENT.search(path.read_text(encoding="utf-8"))
    prose = " ".join(_prose(first[0]).split()) if first else ""
    sentence = re.split(r"(?<=[.]) (?=[A-Z`])", prose, maxsplit=1)[0]
    return sentence if len(sentence) < 200 else sentence[:199].rsplit(" ", 1)[0] + " …"
