# SPDX-License-Identifier: Apache-2.0
"""What help(), editors and type checkers find: a text and annotations at every public name, and stubs
of the extension."""

import ast
import enum
import importlib
import importlib.util
import inspect
import pathlib
import re
import sys

import memspan
import pytest
from memspan import _core

PACKAGES = ["memspan", "shmem", "mf_smem", "memfabric_hybrid", "mf_adapter"]
MODULES = PACKAGES + [
    "memspan.connectors",
    "memspan.connectors.cache_layout",
    "memspan.connectors.kv_regions",
    "memspan.connectors.kv_scheduler",
    "memspan.connectors.kv_transfer",
    "memspan.connectors.leases",
    "memspan.connectors.paged",
    "memspan.connectors.pool_keys",
    "memspan.connectors.pool_settings",
    "memspan.connectors.sglang",
    "memspan.connectors.tensor_dicts",
    "memspan.connectors.vllm_backend",
    "memspan.errors",
    "memspan.fabric",
    "memspan.fabric.bm",
    "memspan.fabric.common",
    "memspan.fabric.engine",
    "memspan.fabric.offload",
    "memspan.fabric.shm",
    "memspan.kv_pool",
    "memspan.mooncake",
    "memspan.programs",
    "memspan.types",
    "mf_adapter.launch_ascend_mf_store",
    "shmem._pyshmem",
    "shmem.core",
    "shmem.construct_tensor",
    "shmem.core.direct",
    "shmem.core.init_final",
    "shmem.core.memory",
    "shmem.core.rma",
    "shmem.core.utils",
    "shmem.errors",
    "shmem.memory",
    "shmem.moves",
    "shmem.names",
    "shmem.startup",
    "shmem.streams",
    "shmem.teams",
    "shmem.typed",
    "shmem.types",
]
if importlib.util.find_spec("torch") is not None:
    MODULES += ["memspan.torch", "memspan.torch.handle", "memspan.torch.handler", "memspan.torch.heap"]
COMPILED = [""] + [f".{name}" for name, part in vars(_core).items() if inspect.ismodule(part)]


def public(owner):
    """What users read of a module or a class: its own, and what it names in __all__."""
    named = getattr(owner, "__all__", None)
    names = named or [name for name in vars(owner) if not name.startswith("_")]
    members = [(name, inspect.getattr_static(owner, name)) for name in names]
    return [pair for pair in members if named or is_ours(pair[1])]


def is_ours(value):
    module = getattr(getattr(value, "fget", value), "__module__", None) or ""
    return module.split(".")[0] in PACKAGES


def is_compiled(value):
    return type(value).__name__ == "nb_func"


def lacks(where, function):
    """What a function of Python does not say."""
    if not inspect.getdoc(function):
        yield f"{where} has no text"
    parameters = list(inspect.signature(function).parameters.values())
    if where.count(".") > 0 and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    for parameter in parameters:
        if parameter.annotation is inspect.Parameter.empty:
            yield f"{where}: {parameter.name} has no annotation"
    if inspect.signature(function).return_annotation is inspect.Signature.empty:
        yield f"{where} does not say what it returns"


def lacks_of_compiled(where, function):
    signature, _, text = (function.__doc__ or "").partition("\n")
    if not re.fullmatch(r"\w+\(.*\) -> .+", signature) or re.search(r"\barg\d*:|std::", signature):
        yield f"{where} has the signature {signature!r}"
    if not text.strip():
        yield f"{where} has no text"


def lacks_of_class(where, owner):
    if not owner.__doc__ or owner.__doc__.startswith(f"{owner.__name__}("):
        yield f"{where} has no text"
    if issubclass(owner, enum.Enum):
        return
    for name, member in public(owner):
        if isinstance(member, property):
            yield from lacks(f"{where}.{name}", member.fget)
        elif isinstance(member, (staticmethod, classmethod)):
            yield from lacks(f"{where}.{name}", member.__func__)
        elif inspect.isfunction(member):
            yield from lacks(f"{where}.{name}", member)
    # What dataclasses make is annotated by its fields.
    if "__init__" in vars(owner) and not hasattr(owner, "__dataclass_fields__"):
        told = vars(owner)["__init__"]
        if inspect.isfunction(told) and not getattr(owner, "_is_protocol", False):
            yield from (lack for lack in lacks(f"{where}.__init__", told) if "no text" not in lack)


@pytest.mark.parametrize("name", MODULES)
def test_every_name_says_what_it_is(name):
    module = importlib.import_module(name)
    assert len(inspect.getdoc(module) or "") > 20
    found = []
    for member, value in public(module):
        where = f"{name}.{member}"
        if is_compiled(value):
            found += lacks_of_compiled(where, value)
        elif inspect.isclass(value):
            found += lacks_of_class(where, value)
        elif inspect.isfunction(value):
            found += lacks(where, value)
    assert found == []


def test_every_function_of_the_extension_has_names_for_its_arguments():
    for part in COMPILED:
        module = importlib.import_module("memspan._core") if not part else getattr(_core, part[1:])
        for name, value in public(module):
            if is_compiled(value):
                signature = value.__doc__.partition("\n")[0]
                assert not re.search(r"\barg\d*:|std::", signature), signature


def stub_of(part):
    folder = pathlib.Path(memspan.__file__).parent / "_core"
    path = folder / f"{part[1:] or '__init__'}.pyi"
    assert path.exists(), f"{path} is not there; the target memspan_stubs makes it"
    return ast.parse(path.read_text(encoding="utf-8"))


def names_of(tree):
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets)
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            yield from (alias.asname or alias.name for alias in node.names)


@pytest.mark.parametrize("part", COMPILED)
def test_stubs_name_everything(part):
    module = getattr(_core, part[1:]) if part else _core
    tree = stub_of(part)
    wanted = {name for name in dir(module) if not name.startswith("_")}
    assert wanted - set(names_of(tree)) == set()
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        given = function.args
        for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs]:
            assert argument.annotation or argument.arg == "self", f"{function.name}: {argument.arg}"
            assert not re.fullmatch(r"arg\d*", argument.arg), function.name
        assert function.returns, function.name


def test_stubs_know_the_names_that_they_use():
    for part in COMPILED:
        tree = stub_of(part)
        known = set(names_of(tree)) | set(dir(__builtins__)) | set(vars(sys.modules["builtins"]))
        annotations = []
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            given = function.args
            annotations += [a.annotation for a in [*given.posonlyargs, *given.args, *given.kwonlyargs]]
            annotations.append(function.returns)
        used = {
            node.id
            for annotation in annotations
            if annotation is not None
            for node in ast.walk(annotation)
            if isinstance(node, ast.Name)
        }
        assert used - known == set(), part


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_that_they_are_typed(package):
    place = pathlib.Path(importlib.import_module(package).__file__).parent
    assert (place / "py.typed").exists()


def test_help_shows_each_name_once():
    import pydoc

    import shmem

    text = pydoc.render_doc(shmem, renderer=pydoc.plaintext)
    functions = text.split("\nFUNCTIONS\n", 1)[1]
    assert "shmem_putmem(dst: int | Buffer | Array, src: int | Buffer | Array, elem_size: int, pe: int)" in functions
    assert "shmem_int32_put(" not in functions  # told of once, in shmem.typed
    assert hasattr(shmem, "shmem_int32_put") and "shmem_T_put" in shmem.typed.__doc__


def test_everything_is_in_one_module():
    import shmem
    from shmem import _pyshmem

    assert shmem._pyshmem is _pyshmem
    for name in [*shmem.__all__, *dir(_core.typed)]:
        if not name.startswith("_"):
            assert getattr(_pyshmem, name) is getattr(shmem, name)
