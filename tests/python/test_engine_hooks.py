# SPDX-License-Identifier: Apache-2.0
"""What engines load in their processes: memspan in Mooncake's place, and as the backend of vLLM's groups. The engines
themselves are in tests/engines."""

import os
import subprocess
import sys
import types

import jobs
import memfabric_hybrid
import memspan
import memspan_autoload
import pytest
from memspan.connectors import tensor_dicts, vllm_backend
from memspan_autoload import mooncake_finder

torch = pytest.importorskip("torch", reason="needs=torch")


def said_by(program, **environment):
    """(exit status, what it printed): a process of its own, since modules that are imported stay."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def installed_mooncake(folder):
    """A package of others, on the path of a process whose PYTHONPATH it is."""
    (folder / "mooncake").mkdir()
    (folder / "mooncake" / "__init__.py").write_text("")
    (folder / "mooncake" / "engine.py").write_text("TransferEngine = 'theirs'")
    return str(folder)


# ---- mooncake, without torch: what torch's import calls


FIND = """
import memspan_autoload.mooncake_finder as finder, sys
finder.install_if_wanted()
assert not any(name.partition(".")[0] == "memspan" for name in sys.modules), "memspan was loaded"
"""
USE = FIND + """
import mooncake.engine, memspan.mooncake
assert mooncake.engine is memspan.mooncake is sys.modules["mooncake.engine"]
try:
    import mooncake.store
except ModuleNotFoundError as error:
    print(error)
"""


def test_the_finder_gives_memspan_and_says_what_it_has_not():
    status, said = said_by(USE, MEMSPAN_SGLANG="1")
    assert status == 0 and "mooncake.store: memspan is in Mooncake's place" in said, said


@pytest.mark.parametrize("value", ["", "0"])
def test_without_the_variable_nothing_is_in_mooncakes_place(value, tmp_path):
    program = FIND + "import mooncake.engine; print(mooncake.engine.TransferEngine)"
    status, said = said_by(program, MEMSPAN_SGLANG=value, PYTHONPATH=installed_mooncake(tmp_path))
    assert (status, said) == (0, "theirs\n")


def test_an_installed_mooncake_is_refused_unless_it_is_to_be_replaced(tmp_path):
    path = installed_mooncake(tmp_path)
    status, said = said_by(USE, MEMSPAN_SGLANG="1", PYTHONPATH=path)
    assert status != 0 and f"RuntimeError: MEMSPAN_SGLANG is 1, and Mooncake's own package is installed: {path}" in said
    status, said = said_by(USE, MEMSPAN_SGLANG="replace", PYTHONPATH=path)
    assert status == 0, said


def test_an_imported_mooncake_and_a_wrong_value_are_refused(tmp_path):
    path = installed_mooncake(tmp_path)
    status, said = said_by("import mooncake\n" + FIND, MEMSPAN_SGLANG="replace", PYTHONPATH=path)
    assert status != 0 and "RuntimeError: mooncake is imported already" in said
    status, said = said_by(FIND, MEMSPAN_SGLANG="yes")
    assert status != 0 and 'MEMSPAN_SGLANG is "yes", allowed are 0, 1, replace' in said


def test_install_is_for_this_process_and_those_that_it_starts():
    program = """
import os, memspan.connectors.sglang as sglang
sglang.install(); sglang.install()
from mooncake.engine import TransferEngine
print(os.environ["MEMSPAN_SGLANG"], TransferEngine.__module__)
"""
    assert said_by(program, MEMSPAN_SGLANG="") == (0, "replace memspan.mooncake\n")


def test_importing_torch_is_enough():
    program = "import torch; from mooncake.engine import TransferEngine; print(TransferEngine.__module__)"
    assert said_by(program, MEMSPAN_SGLANG="1") == (0, "memspan.mooncake\n")


def test_offload_says_why_it_is_not_supported():
    offload = memfabric_hybrid.offload
    config = offload.OffloadConfig()
    config.flags, config.scene = offload.OFFLOAD_FLAG_GIANT_PAGE, offload.Scene.LOCAL
    calls = (
        lambda: offload.initialize(config),
        lambda: offload.empty([4], dtype=torch.float32),
        lambda: offload.get_dva(4096),
        lambda: offload.kv_exchange_copy(torch.zeros(8), "cpu"),
    )
    for call in calls:
        with pytest.raises(memspan.errors.Error, match="NOT_SUPPORTED: .* drives no NPU"):
            call()


# ---- vLLM's groups


def test_the_plugin_loads_nothing_unless_it_is_wanted(monkeypatch):
    program = "import sys, memspan_autoload; memspan_autoload.vllm_backend(); print('memspan' in sys.modules)"
    for value in ("", "0"):
        assert said_by(program, MEMSPAN_VLLM_BACKEND=value) == (0, "False\n")
    monkeypatch.setenv("MEMSPAN_VLLM_BACKEND", "true")
    with pytest.raises(ValueError, match='MEMSPAN_VLLM_BACKEND is "true", allowed are 0 and 1'):
        memspan_autoload.vllm_backend()


class Theirs:
    """vLLM's class of this name: the calls and their parameters."""

    def __init__(self, communicator):
        self.communicator = communicator

    @staticmethod
    def make_group_name(communicator):
        return f"of {communicator.unique_name}"

    def all_reduce(self, input, group=None):
        return "theirs"

    def gather(self, input, gather_list, dst=-1, group=None): ...
    def all_gather_into_tensor(self, output, input, group=None): ...
    def send_tensor_dict(self, tensor_dict, dst): ...
    def recv_tensor_dict(self, src): ...


@pytest.fixture
def vllm(monkeypatch):
    """The modules of vLLM that the plug-in names, and a list of what its logger said."""
    said = []
    logger = types.SimpleNamespace(
        warning=lambda text, *values: said.append("warning: " + text % values),
        info=lambda text, *values: said.append("info: " + text % values),
    )
    platform = types.SimpleNamespace(is_cpu=lambda: True, device_name="cpu")
    communicator = types.SimpleNamespace(_CPUSHMDistributed=type("Copy", (Theirs,), {}))
    modules = {
        "vllm": types.ModuleType("vllm"),
        "vllm.logger": types.SimpleNamespace(init_logger=lambda name: logger),
        "vllm.platforms": types.SimpleNamespace(current_platform=platform),
        "vllm.platforms.cpu": types.SimpleNamespace(CpuPlatform=type("CpuPlatform", (), {"dist_backend": "gloo"})),
        "vllm.config": types.SimpleNamespace(get_current_vllm_config_or_none=lambda: None),
        "vllm.distributed": types.ModuleType("vllm.distributed"),
        "vllm.distributed.device_communicators": types.SimpleNamespace(cpu_communicator=communicator),
    }
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(vllm_backend, "why_no_backend", lambda parallel: "")
    return types.SimpleNamespace(
        said=said,
        platform=platform,
        communicator=communicator,
        cpu=modules["vllm.platforms.cpu"].CpuPlatform,
    )


def test_both_names_are_taken_once(vllm):
    theirs = vllm.communicator._CPUSHMDistributed
    vllm_backend.register()
    vllm_backend.register()
    assert vllm.cpu().dist_backend == vllm.cpu.dist_backend == "memspan"
    assert vllm.communicator._CPUSHMDistributed is vllm_backend.SharedMemory
    assert vllm_backend.SharedMemory.theirs is theirs
    one = types.SimpleNamespace(unique_name="tp:0")
    assert vllm_backend.SharedMemory.make_group_name(one) == "of tp:0"
    assert vllm.said == []


def test_another_vllm_keeps_its_own_and_the_log_says_why(vllm):
    vllm.cpu.dist_backend = None
    vllm.communicator._CPUSHMDistributed = None
    vllm_backend.register()
    assert vllm.cpu.dist_backend is None and vllm.communicator._CPUSHMDistributed is None
    assert vllm.said == [
        "warning: memspan: the groups stay as they are: CpuPlatform.dist_backend of this vLLM is None, no name",
        "warning: memspan: the collectives of tensor parallel groups stay with vLLM: this vLLM has no "
        "cpu_communicator._CPUSHMDistributed",
    ]
    vllm.said.clear()
    changed = type("Changed", (Theirs,), {"all_reduce": lambda self, input, op, group=None: None})
    vllm.communicator._CPUSHMDistributed = changed
    vllm_backend.register()
    assert vllm.communicator._CPUSHMDistributed is changed
    assert "all_reduce takes self, input, op, group, expected are self, input, group" in vllm.said[-1]


def test_other_platforms_are_left_alone(vllm):
    vllm.platform.is_cpu, vllm.platform.device_name = (lambda: False), "cuda"
    vllm_backend.register()
    assert vllm.cpu.dist_backend == "gloo"
    assert "vLLM runs on cuda: memspan's backend is for the CPU" in vllm.said[0]


def test_a_worker_that_cannot_keeps_gloo_and_says_why(vllm, monkeypatch):
    monkeypatch.setattr(vllm_backend, "why_no_backend", lambda parallel: "there are 2 hosts")
    vllm_backend.register()
    assert vllm.said == []  # nobody has asked
    assert vllm.cpu.dist_backend == vllm.cpu.dist_backend == "gloo"
    assert vllm.said == ["warning: memspan: the groups stay with gloo: there are 2 hosts"]


@pytest.mark.parametrize(
    "values, reason",
    [
        ({"nnodes": 2}, "there are 2 hosts"),
        ({"distributed_executor_backend": "ray"}, "Ray may put workers on several hosts"),
        ({"enable_elastic_ep": True}, "elastic expert parallelism"),
    ],
)
def test_what_groups_of_one_host_cannot_be(values, reason):
    assert reason in vllm_backend.why_no_backend(types.SimpleNamespace(**values))


def test_descriptions_of_tensors():
    made = {"hidden_states": torch.zeros(2, 3, dtype=torch.bfloat16), "ü": torch.zeros(0, 4)}
    again = tensor_dicts.empty(tensor_dicts.describe(made))
    assert {key: (value.dtype, value.shape) for key, value in again.items()} == {
        key: (value.dtype, value.shape) for key, value in made.items()
    }
    with pytest.raises(RuntimeError, match='"n" is of int, allowed are tensors of the CPU'):
        tensor_dicts.describe({"n": 3})
    with pytest.raises(RuntimeError, match="a key of a dictionary of tensors is 1"):
        tensor_dicts.describe({1: made["ü"]})
    for wrong in (b"{", b"[1]", b'[["a", "no_type", [1]]]'):
        with pytest.raises(RuntimeError, match="no description of tensors"):
            tensor_dicts.empty(wrong)


def collectives(rank, ranks):
    import datetime

    import torch.distributed as dist

    dist.init_process_group("memspan", timeout=datetime.timedelta(seconds=60))
    group = dist.group.WORLD
    own = vllm_backend.Collectives(group)
    partial = torch.full((3, 5), float(rank + 1), dtype=torch.bfloat16)
    own.all_reduce(partial, group=group)
    assert torch.equal(partial, torch.full((3, 5), ranks * (ranks + 1) / 2, dtype=torch.bfloat16))
    rows = torch.empty(2 * ranks, 4)
    own.all_gather_into_tensor(rows, torch.full((2, 4), float(rank)))
    assert torch.equal(rows[::2, 0], torch.arange(ranks).float())
    last = ranks - 1
    parts = [torch.empty(4) for _ in range(ranks)] if rank == last else None
    own.gather(torch.full((4,), float(rank)), parts, dst=last, group=group)
    assert rank != last or torch.equal(torch.stack(parts)[:, 0], torch.arange(ranks).float())
    big = {f"layer {i}": torch.arange(20_000, dtype=torch.float32) + i for i in range(3)}
    small = {"a": torch.ones(2, 3, dtype=torch.int8).t(), "none": torch.zeros(0, 2)}
    many = {f"a key of some length {i}": torch.tensor([i]) for i in range(100)}  # more than the first message
    for sent in (big, small, many, {}):
        if rank < last:
            own.send_tensor_dict(sent, rank + 1)
        if rank > 0:
            got = own.recv_tensor_dict(rank - 1)
            assert list(got) == list(sent)
            assert all(torch.equal(got[key], sent[key]) and got[key].dtype == sent[key].dtype for key in sent)
    dist.destroy_process_group()


def test_the_collectives_of_a_group(vllm):
    jobs.run(collectives, 3)


def test_a_group_of_another_backend_stays_with_vllm(vllm, monkeypatch):
    vllm_backend.register()
    monkeypatch.setattr(vllm_backend, "why_not", lambda group: "the backend of its group is gloo, not memspan")
    one = types.SimpleNamespace(unique_name="tp:0", device_group=None, rank=0, world_size=2)
    shared = vllm_backend.SharedMemory(one)
    assert shared.all_reduce(None) == "theirs"
    assert vllm.said == [
        "warning: memspan: group tp:0 stays with vLLM's shared memory: the backend of its group is gloo, not memspan"
    ]
