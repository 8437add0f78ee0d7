# SPDX-License-Identifier: Apache-2.0
"""The reference of Python: a page for each module, from its text alone; nothing is imported, so that
neither the extension nor PyTorch has to be there.

What is public has no underscore at its beginning; of a module with __all__, what is named there. A name
that a module takes from another one is listed with where it comes from.
"""

import ast
import pathlib
import re
import textwrap

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules():
    """(name, file) of all public modules."""
    for path in sorted(PYTHON.rglob("*.py")):
        words = list(path.relative_to(PYTHON).with_suffix("").parts)
        if words[-1] == "__init__":
            words.pop()
        if words and words[0] != "core" and not any(word.startswith("_") for word in words):
            yield ".".join(words), path


def purpose(path: pathlib.Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return re.split(r"(?<=[.:;]) ", " ".join(text.split("\n\n")[0].split()), maxsplit=1)[0].rstrip(":;")


def _text(docstring: str | None) -> str:
    """A docstring as Markdown: set-in lines are code, the rest is prose."""
    out = []
    for paragraph in re.split(r"\n\s*\n", docstring or ""):
        if all(line.startswith("    ") for line in paragraph.split("\n")):
            out.append("```python\n" + textwrap.dedent(paragraph) + "\n```")
        else:
            pieces = re.split(r"(``[^`]*``|`[^`]*`)", paragraph)
            out.append("".join(p if p.startswith("`") else re.sub(r"([_*\[\]<])", r"\\\1", p) for p in pieces))
    return "\n\n".join(out)


def _signature(node) -> str:
    lines = [f"@{ast.unparse(d)}" for d in node.decorator_list if "property" in ast.unparse(d) or "method" in ast.unparse(d)]
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    head = f"def {node.name}({ast.unparse(node.args)}){returns}"
    if len(head) > 96:
        arguments = ast.unparse(node.args)
        parts = re.split(r", (?![^\[(]*[\])])", arguments)
        head = f"def {node.name}(\n    " + ",\n    ".join(parts) + f",\n){returns}"
    return "\n".join([*lines, head])


def _function(node, prefix: str, level: int) -> list[str]:
    return [
        f'<a id="{prefix}{node.name}"></a>',
        f'{"#" * level} `{prefix}{node.name}`',
        f"```python\n{_signature(node)}\n```",
        _text(ast.get_docstring(node)),
    ]


def _class(node: ast.ClassDef, level: int) -> list[str]:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    out = [
        f'<a id="{node.name}"></a>',
        f'{"#" * level} `{node.name}`',
        f"```python\nclass {node.name}{f'({bases})' if bases else ''}\n```",
        _text(ast.get_docstring(node)),
    ]
    fields = [ast.unparse(member) for member in node.body if isinstance(member, (ast.Assign, ast.AnnAssign))]
    fields = [field for field in fields if not field.startswith("_")]
    if fields:
        out.append("```python\n" + "\n".join(fields) + "\n```")
    for member in node.body:
        if isinstance(member, _Function) and (not member.name.startswith("_") or member.name == "__init__"):
            if member.name != "__init__" or ast.get_docstring(member) or len(member.args.args) > 1:
                out += _function(member, f"{node.name}.", level + 1)
    return out


def _exported(tree: ast.Module) -> set[str] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            return {n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return None


def page(name: str, path: pathlib.Path) -> str:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    exported = _exported(tree)
    out = [f"# `{name}`", _text(ast.get_docstring(tree))]
    known = {n for n, _ in modules()}
    taken, values = [], []
    for node in tree.body:
        names = [node.name] if isinstance(node, (*_Function, ast.ClassDef)) else []
        is_public = any(n in exported if exported is not None else not n.startswith("_") for n in names)
        if isinstance(node, _Function) and is_public:
            out += _function(node, "", 2)
        elif isinstance(node, ast.ClassDef) and is_public:
            out += _class(node, 2)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and re.fullmatch(r"[A-Z][A-Z_0-9]+", t.id) for t in targets):
                values.append(ast.unparse(node))
        elif isinstance(node, ast.ImportFrom) and node.module and exported is not None:
            here = sorted((a.asname or a.name) for a in node.names if (a.asname or a.name) in exported)
            if here:
                link = f"[`{node.module}`]({node.module}.md)" if node.module in known else f"`{node.module}`"
                taken.append(f"| {link} | {', '.join(f'`{n}`' for n in here)} |")
    if values:
        out += ["## Values", "```python\n" + "\n".join(values) + "\n```"]
    if taken:
        out += ["## Names of other modules", "| from | names |\n|---|---|\n" + "\n".join(taken)]
    return "\n\n".join(piece for piece in out if piece) + "\n"
