# SPDX-License-Identifier: Apache-2.0
"""torch.classes.SymmetricMemory, eager and in TorchScript, and how what needs PyTorch's headers is
compiled."""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import jobs
import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import memspan  # noqa: E402
from memspan import _core  # noqa: E402
from memspan.torch import build, load_classes, native  # noqa: E402

HEAP = 16 << 20
SET, ADD = 0, 1
EQUAL, GREATER, LESS = 0, 1, 2
WAIT_S = 60

COMPILER = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="does not apply: no C++ compiler")


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """Where the jobs' library lies; the first of them compiles it."""
    return tmp_path_factory.mktemp("compiled")


def wait_for(condition):
    end = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < end, f"not within {WAIT_S} s"
        time.sleep(0.01)


# ---- the classes


def one(value, dtype=torch.int64):
    return torch.tensor([value], dtype=dtype)


class FirstHandler:
    """Calls the classes as the interface's first handler does: arguments by position, offsets and
    sizes in tensors of one int64, signals and their values in tensors of int32."""

    def __init__(self, rank, ranks):
        self.manager = torch.classes.SymmetricMemory.Manager()
        self.ops = torch.classes.SymmetricMemory.Ops()
        url = os.environ["MEMSPAN_TEST_URL"]
        assert self.manager.attr_init(rank, ranks, HEAP, url) == 0

    def empty(self, shape, dtype):
        return self.manager.malloc(shape, dtype)

    def put(self, target, target_offset, src, src_offset, size, rank):
        self.ops.put_mem(target, one(target_offset), src, one(src_offset), one(size), rank)

    def get(self, target, target_offset, src, src_offset, size, rank):
        self.ops.get_mem(target, one(target_offset), src, one(src_offset), one(size), rank)

    def put_with_signal(
        self, target, target_offset, src, src_offset, size, signal, offset, value, operation, rank
    ):
        self.ops.put_mem_signal(
            target,
            one(target_offset),
            src,
            one(src_offset),
            one(size),
            signal,
            one(offset),
            one(value, torch.int32),
            operation,
            rank,
        )

    def signal(self, signal, offset, value, operation, rank):
        self.ops.signal_op(signal, one(offset), one(value, torch.int32), operation, rank)

    def wait(self, signal, offset, value, comparison):
        value = one(value, torch.int32)
        self.ops.signal_wait_until(signal, signal, one(offset), value, comparison)


def check_moves(handler, rank, ranks):
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    signal = handler.empty([3], torch.int32)
    turn = 0
    for dtype in (torch.float32, torch.int64, torch.bfloat16, torch.uint8, torch.complex64):
        turn += 1
        box = handler.empty([3, 4], dtype)
        assert box.shape == (3, 4) and box.dtype == dtype and not box.any()
        guard = handler.empty([1], dtype)  # nobody puts before everybody is here
        mine = torch.arange(12).to(dtype) + rank
        handler.put_with_signal(box, 5, mine, 2, 7, signal, 0, turn, SET, after)
        handler.wait(signal, 0, turn, EQUAL)
        theirs = torch.arange(12).to(dtype) + before
        assert torch.equal(box.view(-1)[5:], theirs[2:9]) and not box.view(-1)[:5].any()
        got = torch.zeros(12, dtype=dtype)
        handler.get(got, 1, box, 5, 7, after)
        assert torch.equal(got[1:8], mine[2:9]) and got[0] == 0 and not got[8:].any()
        # Free waits for everybody: nobody reads or puts any more.
        handler.manager.free(guard)
        handler.put(box, 0, mine, 0, 12, rank)
        assert torch.equal(box.view(-1), mine)
        handler.manager.free(box)
    # Whoever sees the signal sees what was put before it.
    big, mine = handler.empty([1 << 18], torch.int32), torch.empty(1 << 18, dtype=torch.int32)
    for round in range(1, 20):
        handler.put_with_signal(big, 0, mine.fill_(round), 0, len(mine), signal, 1, 1, ADD, after)
        handler.wait(signal, 1, round, EQUAL)
        assert (big == round).all()
        handler.signal(signal, 2, 1, ADD, before)  # it may put again
        handler.wait(signal, 2, round, EQUAL)
    handler.manager.free(big)


def check_signals(handler, rank, ranks):
    """Every operation with every comparison, around every sign."""
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    word, signal = handler.empty([ranks], torch.int32), handler.empty([1], torch.int32)
    answer = 0
    for operation in (SET, ADD):
        for value in (1, -1, 2):
            for bound, comparison in ((value, EQUAL), (value - 1, GREATER), (value + 1, LESS)):
                word[before] = 100 if comparison == LESS else -100
                if operation == ADD:
                    value -= int(word[before])
                answer += 1
                handler.signal(signal, 0, answer, SET, before)  # mine is ready
                handler.wait(signal, 0, answer - 1, GREATER)
                handler.signal(word, rank, value, operation, after)
                handler.wait(word, before, bound, comparison)
                if operation == ADD:
                    value += 100 if comparison == LESS else -100
                assert word[before] == value


def check_script(handler, rank, ranks):
    @torch.jit.script
    def made(manager: torch.classes.SymmetricMemory.Manager, count: int):
        return manager.malloc(count, torch.float32), manager.malloc([2], torch.int32)

    @torch.jit.script
    def turned(
        ops: torch.classes.SymmetricMemory.Ops,
        box: torch.Tensor,
        mine: torch.Tensor,
        signal: torch.Tensor,
        rounds: int,
        after: int,
        before: int,
    ):
        """What comes from one side goes on to the other."""
        for round in range(rounds):
            ops.put_mem_signal(
                box, 0, mine, torch.tensor([0]), mine.numel(), signal, 0, round + 1, 0, after
            )
            ops.signal_wait_until(None, signal, 0, torch.tensor([round]), 1)
            mine = box.clone() + 1
            ops.signal_op(signal, 1, 1, 1, before)
            ops.signal_wait_until(box, signal, 1, round + 1, 0)
        got = torch.zeros_like(mine)
        ops.get_mem(got, 0, box, 0, got.numel(), after)
        return mine, got

    box, signal = made(handler.manager, 1000)
    assert box.shape == (1000,) and box.dtype == torch.float32
    mine = torch.full((1000,), float(rank))
    rounds = 50
    end, got = turned(
        handler.ops, box, mine, signal, rounds, (rank + 1) % ranks, (rank - 1) % ranks
    )
    assert (end == (rank - rounds) % ranks + rounds).all()
    assert (got == (rank + 1 - rounds) % ranks + rounds - 1).all()
    with pytest.raises(RuntimeError, match="target has 1000 elements"):
        turned(handler.ops, box, torch.zeros(1001), signal, 1, 0, 0)
    handler.manager.free(box)


def check_beside_python(handler, rank, ranks):
    """The functions of memspan.torch in the same job; the classes take their tensors."""
    from memspan.torch import symmetric_memory as sm

    theirs, ours = sm.empty((8,)), handler.empty([8], torch.float32)
    handler.put(theirs, 0, torch.full((8,), float(rank)), 0, 8, (rank + 1) % ranks)
    sm.barrier()
    assert (theirs == (rank - 1) % ranks).all()
    handler.put(ours, 0, theirs, 0, 8, (rank + 1) % ranks)
    sm.barrier()
    assert (ours == (rank - 2) % ranks).all()
    # Each has its own exceptions for what would end the process.
    with pytest.raises(memspan.InvalidArgument, match="not entirely in the symmetric heap"):
        _core.shmem.shmem_putmem(torch.zeros(1).data_ptr(), ours.data_ptr(), 4, 0)
    with pytest.raises(ValueError, match="target is not a symmetric tensor"):
        handler.put(torch.zeros(8), 0, ours, 0, 8, 0)
    with pytest.raises(memspan.InvalidArgument, match="PE|pe is 99"):
        _core.shmem.shmem_putmem(ours.data_ptr(), ours.data_ptr(), 4, 99)


def check_freed(handler, rank, ranks):
    box, kept = handler.empty([4], torch.int64), handler.empty([4], torch.int64)
    view = box[1:].fill_(3)
    with pytest.raises(ValueError, match="a part of what malloc"):
        handler.manager.free(view)
    handler.manager.free(box)
    # Its memory is another one's now, which neither the tensor nor a view of it reaches.
    other = handler.empty([4], torch.int64).fill_(7)
    view.fill_(9)
    assert (other == 7).all() and (view == 9).all()
    for wrong in (
        lambda: handler.put(view, 0, torch.zeros(4, dtype=torch.int64), 0, 1, 0),
        lambda: handler.put(other, 0, box, 0, 1, 0),
        lambda: handler.get(box, 0, other, 0, 1, 0),
        lambda: handler.manager.free(box),
    ):
        with pytest.raises(ValueError, match="was freed"):
            wrong()
    assert (other == 7).all()
    if rank == 0:
        del other  # without free it stays the heap's, which is no other rank's trouble
    handler.manager.free(kept)
    aligned = handler.manager.aligned_malloc([3], torch.uint8, 4096)
    assert aligned.data_ptr() % 4096 == 0 and not aligned.any()
    handler.manager.free(aligned)
    older = torch.classes.ShmemOps.Manager()
    raw = older.malloc_tensor(100)
    like = older.malloc_like(torch.ones(2, 3, dtype=torch.int16))
    assert (raw.dtype, raw.numel()) == (torch.uint8, 100) and not raw.any()
    assert (like.dtype, like.shape) == (torch.int16, (2, 3)) and older.get_name()
    older.free_tensor(raw)
    older.free_tensor(like)
    assert older.attr_init(rank, ranks, HEAP, "") == 0  # the job that there is


def classes(rank, ranks):
    if "MEMSPAN_TEST_MARKS" in os.environ:
        open(os.path.join(os.environ["MEMSPAN_TEST_MARKS"], str(rank)), "w").close()
    load_classes()
    assert load_classes() is torch.classes.SymmetricMemory
    handler = FirstHandler(rank, ranks)
    check_moves(handler, rank, ranks)
    check_signals(handler, rank, ranks)
    check_script(handler, rank, ranks)
    check_beside_python(handler, rank, ranks)
    check_freed(handler, rank, ranks)
    last = handler.empty([3], torch.float64).fill_(rank)
    assert handler.manager.finalize() == 0 and handler.manager.finalize() == 0
    # What a tensor had stays, in memory of its own.
    assert last.tolist() == [rank] * 3
    with pytest.raises(RuntimeError, match="in no job"):
        handler.put(last, 0, last, 0, 1, 0)


@needs_compiler
def test_two_ranks_compile_once_and_move(cache, tmp_path):
    """Both ask for the library at once, where there is none."""
    compiler = tmp_path / "c++"
    # It does not begin before both are there.
    compiler.write_text(
        f"""#!/bin/sh
echo once >>{tmp_path}/calls
i=0
until [ -e {tmp_path}/0 ] && [ -e {tmp_path}/1 ]; do
  i=$((i + 1)); [ $i -lt 600 ] || exit 1; sleep 0.1
done
exec {COMPILER} "$@"
"""
    )
    compiler.chmod(0o755)
    jobs.run(
        classes,
        2,
        CXX=str(compiler),
        MEMSPAN_TORCH_BUILD_DIR=str(cache),
        MEMSPAN_TEST_MARKS=str(tmp_path),
    )
    assert (tmp_path / "calls").read_text() == "once\n"


@needs_compiler
def test_three_ranks_move(cache):
    jobs.run(classes, 3, MEMSPAN_TORCH_BUILD_DIR=str(cache))


def mistakes(rank, ranks):
    load_classes()
    manager, ops = torch.classes.SymmetricMemory.Manager(), torch.classes.SymmetricMemory.Ops()
    assert manager.get_name() and ops.get_name()
    with pytest.raises(RuntimeError, match="in no job"):
        manager.malloc([4], torch.int32)
    with pytest.raises(RuntimeError, match="in no job"):
        ops.put_mem(torch.zeros(1), 0, torch.zeros(1), 0, 1, 0)
    for arguments, what in [
        ((0, 0, HEAP, ""), "n_ranks is 0"),
        ((0, 1 << 31, HEAP, ""), "n_ranks is 2147483648"),
        ((2, 2, HEAP, ""), "my_pe is 2, allowed are 0 to 1"),
        ((0, 1, 0, ""), "local_mem_size is 0"),
        ((0, 2, HEAP, "nowhere"), "nowhere"),
        ((0, 1, HEAP, "x" * 64), "64 characters"),
    ]:
        with pytest.raises(ValueError, match=what):
            manager.attr_init(*arguments)
    assert manager.finalize() == 0
    assert manager.attr_init(0, 1, HEAP, "") == 0 and manager.attr_init(0, 1, HEAP, "") == 0
    with pytest.raises(ValueError, match="PE 0 of 1 already"):
        manager.attr_init(1, 2, HEAP, "")
    made = [
        manager.malloc(4, torch.float32),
        manager.malloc((), torch.float32),
        manager.malloc(shape=torch.Size([2, 0]), dtype=torch.bool),
    ]
    assert [tuple(tensor.shape) for tensor in made] == [(4,), (), (2, 0)]
    box, scalar, empty = made
    ops.put_mem(scalar, 0, torch.ones(()), 0, 1, 0)
    assert scalar == 1
    ops.put_mem(empty, 0, torch.zeros(0, dtype=torch.bool), 0, 0, 0)
    word, mine = manager.malloc(2, torch.int32), torch.ones(4)
    for kind in (torch.uint8, torch.int16, torch.int32, torch.uint32, torch.int64, torch.uint64):
        ops.put_mem(box, one(1, kind), mine, torch.tensor(0, dtype=kind), one(2, kind), 0)
    assert box.tolist() == [0, 1, 1, 0]
    outside = torch.zeros(4)
    for wrong, what in [
        (lambda: ops.put_mem(box, 3, mine, 0, 2, 0), "target has 4 elements, and 2 from element 3"),
        (lambda: ops.put_mem(box, 0, mine, 3, 2, 0), "src has 4 elements"),
        (lambda: ops.put_mem(box, -1, mine, 0, 1, 0), "target has 4"),
        (lambda: ops.put_mem(box, 0, mine, 0, -1, 0), "target has 4"),
        (lambda: ops.put_mem(box, 2**63 - 1, mine, 0, 2**63 - 1, 0), "target has 4"),
        (lambda: ops.put_mem(box, 0, mine, 0, 1, 1), "target_pe is 1, allowed are 0 to 0"),
        (lambda: ops.put_mem(box, 0, mine, 0, 1, -1), "target_pe is -1"),
        (lambda: ops.put_mem(box, 0.5, mine, 0, 1, 0), "target_offset is of type Double"),
        (lambda: ops.put_mem(box, True, mine, 0, 1, 0), "target_offset is of type Bool"),
        (lambda: ops.put_mem(box, None, mine, 0, 1, 0), "target_offset is of type None"),
        (lambda: ops.put_mem(box, 0, mine, one(0.0, torch.half), 1, 0), "src_offset is of Half"),
        (lambda: ops.put_mem(box, 0, mine, 0, torch.tensor([1, 1]), 0), "size has 2 elements"),
        (lambda: ops.put_mem(box, 0, mine, 0, one(2**64 - 1, torch.uint64), 0), "size is 18446"),
        (lambda: ops.put_mem(box, 0, mine.double(), 0, 1, 0), "target is of Float, and src of"),
        (lambda: ops.put_mem(outside, 0, mine, 0, 1, 0), "target is not a symmetric tensor"),
        (lambda: ops.get_mem(mine, 0, outside, 0, 1, 0), "src is not a symmetric tensor"),
        (lambda: ops.put_mem(box, 0, torch.zeros(4, 2)[:, 0], 0, 1, 0), "src is not contiguous"),
        (lambda: ops.put_mem(box, 0, torch.ones(4, device="meta"), 0, 1, 0), "of the CPU"),
        (lambda: ops.put_mem(box, 0, box, 1, 2, 0), "overlap"),
        (lambda: ops.signal_op(box, 0, 1, SET, 0), "signal is of Float"),
        (lambda: ops.signal_op(word, 2, 1, SET, 0), "signal has 2 elements"),
        (lambda: ops.signal_op(word, 0, 1, 2, 0), "signal_op is 2"),
        (lambda: ops.signal_op(word, 0, 2**31, SET, 0), "signal_value is 2147483648"),
        (lambda: ops.signal_op(outside.int(), 0, 1, SET, 0), "signal is not a symmetric"),
        (lambda: ops.put_mem_signal(box, 0, mine, 0, 4, word, 2, 1, SET, 0), "signal has 2"),
        (lambda: ops.signal_wait_until(None, word, 0, 1, 3), "compare_op is 3"),
        (lambda: ops.signal_wait_until(None, word, 0, -(2**31) - 1, EQUAL), "compare_value is"),
        (lambda: manager.malloc(-3, torch.float32), r"shape is \[-3\]"),
        (lambda: manager.malloc([1 << 40, 1 << 40], torch.float32), "more than memory can be"),
        (lambda: manager.malloc([3], 99), "dtype is 99"),
        (lambda: manager.aligned_malloc([3], torch.int8, 3), "alignment is 3"),
        (lambda: manager.aligned_malloc([3], torch.int8, 0), "alignment is 0"),
        (lambda: manager.free(outside), "not made by malloc"),
    ]:
        with pytest.raises(ValueError, match=what):
            wrong()
    with pytest.raises(RuntimeError, match="1073741824 bytes do not fit"):
        manager.malloc([1 << 30], torch.uint8)
    assert box.tolist() == [0, 1, 1, 0] and word.tolist() == [0, 0]
    manager.finalize()
    assert manager.attr_init(0, 1, HEAP, "") == 0
    with pytest.raises(ValueError, match="belongs to a job that has ended"):
        ops.put_mem(box, 0, mine, 0, 1, 0)
    left = manager.malloc(4, torch.int32)
    assert left.tolist() == [0] * 4
    _core.shmem.finalize()  # somebody else ends the job
    with pytest.raises(RuntimeError, match="in no job"):
        ops.signal_op(left, 0, 1, SET, 0)
    assert manager.attr_init(0, 1, HEAP, "") == 0
    with pytest.raises(ValueError, match="belongs to a job that has ended"):
        ops.signal_op(left, 0, 1, SET, 0)


@needs_compiler
def test_mistakes_are_exceptions(cache):
    jobs.run(mistakes, 1, MEMSPAN_TORCH_BUILD_DIR=str(cache))


def dies(rank, ranks):
    load_classes()
    handler = FirstHandler(rank, ranks)
    signal = handler.empty([1], torch.int32)
    if rank == 1:
        os.kill(os.getpid(), 9)
    with pytest.raises(RuntimeError, match="PE 1"):
        handler.wait(signal, 0, 1, EQUAL)
    with pytest.raises(RuntimeError, match="PE 1"):
        handler.manager.free(signal)
    print("noticed", flush=True)
    os._exit(0)


@needs_compiler
def test_the_death_of_a_rank_is_an_exception(cache):
    ends = jobs.Job(dies, 2, MEMSPAN_TORCH_BUILD_DIR=str(cache)).ends()
    assert [code for code, _, _ in ends] == [0, -9], ends
    assert ends[0][1] == "noticed\n"


# ---- compiling

TINY = """#include <memspan/memspan.h>
extern "C" __attribute__((visibility("default"))) const char* tiny() { return memspan_last_error(); }
"""
MODULE = """#include <Python.h>
#define JOINED(a, b) a##b
#define NAME(name) JOINED(PyInit_, name)
#ifdef UNKNOWN
extern "C" int nowhere();
#else
static int nowhere() { return 7; }
#endif
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "tiny", nullptr, -1};
PyMODINIT_FUNC NAME(TORCH_EXTENSION_NAME)() {
  PyObject* made = PyModule_Create(&definition);
  PyModule_AddIntConstant(made, "seven", nowhere());
  return made;
}
"""


@pytest.fixture
def pieces(tmp_path, monkeypatch):
    """Small sources instead of the real ones, and an empty folder for what becomes of them."""
    sources = tmp_path / "csrc"
    sources.mkdir()
    (sources / "tiny.cc").write_text(TINY)
    (sources / "module.cc").write_text(MODULE)
    (sources / "broken.cc").write_text("int x = nothing_such;\n" + "int y = 1\n" * 50)
    monkeypatch.setattr(native, "_CSRC", str(sources))
    made = {"tiny": native._library("tiny"), "broken": native._library("broken")}
    made["module"] = native._extension("module")
    monkeypatch.setattr(native, "PIECES", made)
    monkeypatch.setattr(native, "_made", {})
    monkeypatch.setattr(native, "_reasons", {})
    monkeypatch.setenv("MEMSPAN_TORCH_BUILD_DIR", str(tmp_path / "made"))
    yield sources
    sys.modules.pop("memspan.torch._module", None)


def nothing(name="tiny"):
    native._made.clear()
    native._reasons.clear()
    assert native.library(name) is None
    return native.why_not(name)


def test_why_there_is_nothing(pieces, monkeypatch, tmp_path):
    with monkeypatch.context() as unwilling:
        unwilling.setenv("MEMSPAN_TORCH_BUILD_DIR", "none")
        assert nothing() == 'MEMSPAN_TORCH_BUILD_DIR is "none"'
    monkeypatch.setenv("CXX", "/nowhere/c++ -g")
    assert nothing() == 'CXX is "/nowhere/c++", which is not a program'
    with monkeypatch.context() as poor:
        poor.setenv("PATH", str(tmp_path))
        poor.delenv("CXX")
        assert nothing().startswith("no C++ compiler")
    with monkeypatch.context() as poor:
        poor.setattr(native, "_TORCH", str(tmp_path))
        assert nothing() == f"{tmp_path}/include/torch/library.h does not exist"
    assert not (tmp_path / "made").exists()
    with pytest.raises(ValueError, match='no piece "nosuch"'):
        native.library("nosuch")
    with pytest.raises(ValueError, match="tiny is no extension"):
        native.load("tiny")
    with pytest.raises(ValueError, match="module is an extension"):
        native.library("module")


def test_without_the_library_there_are_no_classes(monkeypatch):
    monkeypatch.setattr(native, "_made", {})
    monkeypatch.setenv("MEMSPAN_TORCH_BUILD_DIR", "none")
    with pytest.raises(memspan.Error, match='MEMSPAN_TORCH_BUILD_DIR is "none"'):
        load_classes()


@needs_compiler
def test_what_is_compiled_is_kept(pieces, monkeypatch):
    path = native.library("tiny")
    assert native.why_not("tiny") is None
    folder = os.path.dirname(path)
    assert os.path.basename(folder).startswith(f"torch-{torch.__version__}-cpython-")
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert sorted(os.listdir(folder)) == ["libtiny.so", "libtiny.so.lock", "libtiny.so.sha256"]
    before = os.stat(path).st_ino
    # Without a compiler what is there is used.
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert native.build("tiny") == path and os.stat(path).st_ino == before


@needs_compiler
def test_without_a_home_it_is_kept_among_temporary_files(pieces, monkeypatch, tmp_path):
    monkeypatch.delenv("MEMSPAN_TORCH_BUILD_DIR")
    public = tmp_path / "tmp"
    public.mkdir()
    public.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(public))
    own = public / f"memspan-{os.geteuid()}"
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    assert native.build("tiny").startswith(f"{own}/torch-") and own.stat().st_mode & 0o777 == 0o700
    # Neither HOME nor a line in the passwd file.
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert native.build("tiny").startswith(f"{own}/torch-")
    own.chmod(0o770)
    assert nothing() == f"{own} can be written to by others"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "file"))
    assert "MEMSPAN_TORCH_BUILD_DIR" in nothing()


@needs_compiler
def test_what_is_damaged_or_old_is_not_used(pieces):
    path = native.build("tiny")
    for damage in (b"", open(path, "rb").read()[:-1], None):
        if damage is None:
            os.remove(f"{path}.sha256")
        else:
            with open(path, "wb") as file:
                file.write(damage)
        assert native.build("tiny") == path
        assert native._is_whole(path) and os.path.getsize(path) > 1000
    (pieces / "tiny.cc").write_text(TINY + "// other\n")
    newer = native.build("tiny")
    assert newer != path and os.path.exists(newer)
    (pieces / "used.h").write_text("// by some source\n")
    assert native.build("tiny") not in (path, newer)


@needs_compiler
def test_a_folder_of_others_is_not_used(pieces, monkeypatch):
    folder = os.path.dirname(native.build("tiny"))
    os.chmod(folder, 0o770)
    assert nothing() == f"{folder} can be written to by others"
    os.chmod(folder, 0o700)
    if os.stat(folder).st_uid != 0:
        monkeypatch.setattr(os, "geteuid", lambda: os.stat(folder).st_uid + 1)
        assert "belongs to user" in nothing()
        monkeypatch.undo()
    else:
        os.chown(folder, 12345, -1)
        assert nothing() == f"{folder} belongs to user 12345, not to this one"
    shutil.rmtree(folder)
    with open(folder, "w"):
        assert nothing() == f"{folder} is not a folder"


@needs_compiler
def test_a_compilers_error_is_kept(pieces):
    reason = nothing("broken")
    assert "ended with" in reason and "nothing_such" in reason and len(reason.splitlines()) < 30


@needs_compiler
def test_extensions_are_modules(pieces):
    module = native.load("module")
    assert module.seven == 7 and module is sys.modules["memspan.torch._module"]
    assert native.load("module") is module
    (pieces / "module.cc").write_text("#define UNKNOWN\n" + MODULE)
    native._made.clear()
    sys.modules.pop("memspan.torch._module")
    assert native.load("module") is None
    assert "nowhere" in native.why_not("module") and "memspan.torch._module" not in sys.modules


@needs_compiler
def test_who_waits_shares_a_failure(pieces, monkeypatch, tmp_path, capsys):
    """One thread compiles what cannot be, and says that it takes long; another one waits for it
    meanwhile."""
    monkeypatch.setattr(native, "_SILENT_S", 0.01)
    said = []

    def has_said():
        said.append(capsys.readouterr().err)
        return "compiles broken" in "".join(said)

    compiler = tmp_path / "c++"
    compiler.write_text(
        f"""#!/bin/sh
echo once >>{tmp_path}/calls
i=0
until [ -e {tmp_path}/go ]; do i=$((i + 1)); [ $i -lt 600 ] || exit 1; sleep 0.1; done
echo it cannot be
exit 3
"""
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    reasons = []

    def try_it():
        with pytest.raises(native.CannotBuild) as failure:
            native.build("broken")
        reasons.append(str(failure.value))

    waits, sleep = threading.Event(), time.sleep
    first, second = (threading.Thread(target=try_it) for _ in range(2))
    first.start()
    wait_for((tmp_path / "calls").exists)

    def note(seconds):
        waits.set()
        sleep(seconds)

    monkeypatch.setattr(native.time, "sleep", note)
    second.start()
    assert waits.wait(WAIT_S)
    wait_for(has_said)
    (tmp_path / "go").touch()
    first.join(WAIT_S)
    second.join(WAIT_S)
    assert len(reasons) == 2 and reasons[0] == reasons[1] and "it cannot be" in reasons[0]
    assert (tmp_path / "calls").read_text() == "once\n"
    has_said()
    lines = "".join(said).splitlines()
    assert len(lines) == 1 and lines[0].startswith(f"memspan: {compiler} compiles broken for PyTorch")
    assert str(tmp_path / "made") in lines[0] and "half a minute" in lines[0]
    # Later, it is tried again.
    monkeypatch.delenv("CXX")
    assert "nothing_such" in nothing("broken")


@needs_compiler
def test_the_death_of_who_compiles_frees_the_others(pieces, monkeypatch):
    path = native.build("tiny")
    os.remove(path)
    os.mkdir(f"{path}.part-left")
    hold = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); "
    hold += "print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", hold, f"{path}.lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout.readline() == b"1\n"
    with monkeypatch.context() as hasty:
        hasty.setattr(native, "_LOCK_S", 0.2)
        assert "another process has held" in nothing()
    holder.kill()
    holder.communicate()
    assert native.build("tiny") == path and not os.path.exists(f"{path}.part-left")
    with open(f"{path}.lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@needs_compiler
def test_a_compiler_that_does_not_end_is_ended(pieces, monkeypatch, tmp_path):
    compiler = tmp_path / "c++"
    compiler.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >{tmp_path}/child\nwait\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    monkeypatch.setattr(native, "_COMPILE_S", 1)
    assert nothing().endswith("did not end within 1 s")
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: not os.path.exists(f"/proc/{child}") or is_zombie(child))


def is_zombie(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "Z"


@needs_compiler
def test_building_ahead(pieces, monkeypatch, capsys, tmp_path):
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["build", "--out", str(out)])
    assert build.main() == 1
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert [line.split(": ")[0] for line in lines] == ["tiny", "module"]
    assert "nothing_such" in said.err
    path = lines[0].split(": ")[-1]
    assert path.startswith(str(out)) and os.path.exists(path)
    # Others may use it.
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o755
    monkeypatch.setenv("MEMSPAN_TORCH_BUILD_DIR", str(out))
    monkeypatch.setenv("CXX", "/nowhere/c++")
    assert native.library("tiny") == path
    del native.PIECES["broken"]
    assert build.main() == 0
