# SPDX-License-Identifier: Apache-2.0
"""Finds every text in src/, tools/ and python/ that a user may see as a message.

A message is a statement's strings that have words in them, in their order; what the program puts between them
is `…`. Everything with words counts until a rule below, or docs/messages/not_errors.toml, says what it is
instead, so that a new message cannot be forgotten:

    message   says that something failed, or warns
    doing     stands in front of a message: what was being done (MEMSPAN_TRY, annotate)
    system    a call of the system failed; the errno follows (Status::from_errno)
"""

import ast
import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
GAP = "…"

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>\w*)\((?P<raw>.*?)\)(?P=d)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\''
    r"|[A-Za-z_]\w*|\d[\w'.]*|::|->|\S",
    flags=re.S,
)
# Statements whose strings no user sees as a message.
_NO_MESSAGE = re.compile(r"\bnb :: sig\b|\bm(?:odule)? \. def|\bstatic_assert\b|LogLevel :: k(?:Info|Debug)\b")


@dataclasses.dataclass(frozen=True)
class Message:
    path: str
    line: int
    kind: str
    code: str  # "INVALID_ARGUMENT", "WARN", "ValueError", ... or ""
    text: str


def _has_words(text: str) -> bool:
    return " " in text.strip() and re.search(r"[a-z]{2}", text) is not None


def _plain(literal: str) -> str:
    """A string of C++ as a reader sees it: what is put in is `…`."""
    literal = literal.replace("\\n", " ").replace('\\"', '"').replace("\\\\", "\\")
    literal = re.sub(r"\{[^{}]*\}", GAP, literal)
    return re.sub(r"%[-+ #0]*\d*(?:\.\d+|\.\*)?(?:hh|h|ll|l|z|j)?[diouxXeEfgGscp]", GAP, literal)


def _joined(pieces: list[str]) -> str:
    return re.sub(rf"\s+|{GAP}(?:\s*{GAP})+", lambda m: GAP if GAP in m[0] else " ", GAP.join(pieces)).strip()


def _statements(text: str):
    """Lists of (token, position), without comments; a statement ends at ; or a brace."""
    current = []
    for token in _TOKEN.finditer(text):
        word = token[0]
        if word.startswith(("//", "/*")):
            continue
        if word in ("{", "}", ";"):
            if current:
                yield current
            current = []
        else:
            current.append((token["raw"] and f'"{token["raw"]}"' or word, token.start()))
    if current:
        yield current


def _strings(words: list[str]) -> list[str]:
    """The strings of a statement; neighbours are one."""
    out, was_string = [], False
    for word in words:
        is_string = word.startswith('"')
        if is_string and was_string:
            out[-1] += word[1:-1]
        elif is_string:
            out.append(word[1:-1])
        was_string = is_string
    return [_plain(piece) for piece in out]


def _last_argument(words: list[str]) -> int:
    """Where the last argument of a call that is the whole statement begins."""
    depth, comma = 0, len(words)
    for i, word in enumerate(words):
        depth += word in ("(", "[") or -(word in (")", "]"))
        if word == "," and depth == 1:
            comma = i
    return comma


def _of_cpp(path: str, text: str):
    for statement in _statements(text):
        words = [word for word, _ in statement]
        strings = _strings(words)
        if not any(_has_words(piece) for piece in strings):
            continue
        shape = " ".join('""' if word.startswith('"') else word for word in words)
        if _NO_MESSAGE.search(shape) or shape.startswith("#"):
            continue
        line = text.count("\n", 0, statement[0][1]) + 1
        if re.match(r"MEMSPAN_TRY(?:_ASSIGN)? \(", shape) or " . annotate (" in shape:
            cut = _last_argument(words) if shape.startswith("MEMSPAN_TRY") else 0
            yield Message(path, line, "doing", "", _joined(_strings(words[cut:])))
            strings = _strings(words[:cut])
            if not any(_has_words(piece) for piece in strings):
                continue
        code = re.search(r"\bCode :: k(\w+)", shape)
        level = re.search(r"LogLevel :: k(\w+)", shape)
        named = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", (code or level)[1]).upper() if code or level else ""
        kind = "system" if "from_errno (" in shape else "message"
        yield Message(path, line, kind, "SYSTEM" if kind == "system" else named, _joined(strings))


def _text_of(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else GAP for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _text_of(node.left), _text_of(node.right)
        if left is not None or right is not None:
            return (GAP if left is None else left) + (GAP if right is None else right)
    return None


def _of_python(path: str, text: str):
    tree = ast.parse(text)
    hidden = set()  # documentation, and parts of texts that are taken whole
    kinds: dict[ast.AST, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            hidden.add(node.value)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for inside in ast.walk(node.exc):
                kinds[inside] = ast.unparse(node.exc.func)
        for field in ("annotation", "returns"):  # types
            if getattr(node, field, None) is not None:
                hidden.update(ast.walk(getattr(node, field)))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "typing.cast"):
            hidden.update(ast.walk(node.args[0]))
    for node in ast.walk(tree):
        found = None if node in hidden else _text_of(node)
        if found is None:
            continue
        hidden.update(inside for inside in ast.walk(node) if inside is not node)
        if _has_words(found):
            yield Message(path, node.lineno, "message", kinds.get(node, ""), _joined([found]))


def messages() -> list[Message]:
    out = []
    for top in ("src", "tools", "python"):
        for path in sorted((ROOT / top).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if name.startswith(("tools/dev/", "tools/site/")):  # for who works on memspan
                continue
            if path.suffix in (".cc", ".h", ".def"):
                out += _of_cpp(name, path.read_text(encoding="utf-8"))
            elif path.suffix == ".py":
                out += _of_python(name, path.read_text(encoding="utf-8"))
    return out
