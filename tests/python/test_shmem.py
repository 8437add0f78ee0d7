# SPDX-License-Identifier: Apache-2.0
"""`shmem` alone, its codes, words and objects."""

import os
import signal
import struct
import subprocess
import sys

from jobs import hosts
import jobs
import numpy as np
import pytest
import shmem

HEAP = 1 << 24


@pytest.fixture
def alone():
    assert shmem.shmem_init(0, 1, HEAP) == 0
    yield
    shmem.shmem_finalize()


# ---- memory


def test_an_address_is_an_int_and_memory(alone):
    address = shmem.shmem_malloc(100)
    assert isinstance(address, int) and isinstance(address, shmem.Address)
    view = memoryview(address)
    assert (view.nbytes, view.readonly) == (100, False)
    view[3] = 7
    assert memoryview(shmem.Address(address + 3))[0] == 7
    assert memoryview(shmem.Address(address + 3)).nbytes == 97
    view.release()
    shmem.shmem_free(address)
    with pytest.raises(BufferError, match="no longer"):
        memoryview(address)


def test_numpy_and_dlpack_share_the_memory(alone):
    address = shmem.shmem_calloc(4, 8)
    whole = address.numpy("int64")
    assert whole.tolist() == [0, 0, 0, 0]
    bytes_ = np.from_dlpack(address)
    whole[1] = 0x0102
    assert (bytes_[8], bytes_[9]) == (2, 1)
    assert shmem.as_array(address, "float32", (2, 3)).shape == (2, 3)
    del whole, bytes_
    shmem.shmem_free(address)


def test_tensors(alone):
    made = shmem.tensor((3, 4), "float32")
    assert (made.shape, made.dtype, made.sum()) == ((3, 4), np.float32, 0)
    assert shmem.tensor(0, "int8").shape == (0,)
    with pytest.raises(MemoryError, match="symmetric heap"):
        shmem.tensor(HEAP)
    with pytest.raises(ValueError, match="extents"):
        shmem.tensor((2, -1))
    shmem.free(made)


def test_none_where_there_is_no_memory(alone):
    assert shmem.shmem_malloc(0) is None
    assert shmem.shmem_malloc(2 * HEAP) is None
    assert shmem.errors.last_error().startswith("shmem_malloc: ")
    assert shmem.shmem_align(48, 100) is None
    assert shmem.shmem_align(4096, 100) % 4096 == 0
    assert shmem.shmem_ptr(12345, 0) is None
    shmem.shmem_free(None)


def test_failures_name_the_function_of_python(alone):
    """Whichever of C's functions does the work."""
    place = shmem.shmem_malloc(64)
    outside = 12345
    ended = {
        "shmem_putmem": (place, place, 8, 7),
        "shmem_putmem_nbi": (outside, place, 8, 0),
        "shmem_getmem": (place, outside, 8, 0),
        "shmem_int32_put": (outside, place, 1, 0),
        "shmem_int64_get": (place, outside, 1, 0),
        "shmem_int32_p": (outside, 1, 0),
        "shmem_int64_atomic_fetch_add": (outside, 1, 0),
        "shmem_put32": (place, place, 1, 9),
        "shmem_int32_wait_until": (outside, shmem.CmpOp.CMP_EQ, 1),
    }
    for name, arguments in ended.items():
        with pytest.raises(shmem.errors.Error) as caught:
            getattr(shmem, name)(*arguments)
        assert str(caught.value).startswith(f"{name.removesuffix('_nbi')}"), str(caught.value)
    coded = {
        "shmem_malloc": (2 * HEAP,),
        "shmem_calloc": (2, HEAP),
        "shmem_align": (48, 100),
        "shmem_init": (0, 1, 1 << 20),
        "set_log_level": (77,),
        "set_conf_store_tls": (True, "nonsense"),
    }
    for name, arguments in coded.items():
        getattr(shmem, name)(*arguments)
        assert shmem.errors.last_error().startswith(f"{name}: "), (name, shmem.errors.last_error())
    shmem.shmem_free(place)


@pytest.mark.parametrize(
    "view",
    [
        lambda address: shmem.as_array(address, "int32"),
        memoryview,
        np.from_dlpack,
        lambda address: memoryview(np.from_dlpack(address)[3:]),
    ],
    ids=["numpy", "memoryview", "dlpack", "of dlpack"],
)
def test_views_that_stay_are_warned_of(view):
    assert shmem.shmem_init(0, 1, HEAP) == 0
    address = shmem.shmem_malloc(64)
    first, kept = view(address), view(address)
    del first
    with pytest.warns(RuntimeWarning, match=f"1 arrays or memoryviews .* at {address:#x}"):
        shmem.shmem_finalize()
    assert shmem.memory.views_in_use() == []
    del kept
    # Of what nobody took there is none.
    assert shmem.shmem_init(0, 1, HEAP) == 0
    capsule = shmem.shmem_malloc(64).__dlpack__()
    assert len(shmem.memory.views_in_use()) == 1
    del capsule
    assert shmem.memory.views_in_use() == []
    shmem.shmem_finalize()


def views_after_the_end(rank, ranks):
    assert shmem.shmem_init(mem_size=HEAP) == 0
    mine, freed = shmem.tensor(1000, "int32"), shmem.tensor(5000, "int8")
    if hosts.ARE_MANY:
        with pytest.raises(ValueError, match=f"process {1 - rank} is on another host than process {rank}"):
            shmem.peer_array(mine, 1 - rank)
    of_peer = mine if hosts.ARE_MANY else shmem.peer_array(mine, 1 - rank)
    view = memoryview(shmem.shmem_malloc(100))
    mine[:], view[3], freed[4999] = rank + 5, 9, 8
    shmem.free(freed)
    shmem.shmem_barrier_all()
    used = 3 if hosts.ARE_MANY else 4
    with pytest.warns(RuntimeWarning, match=rf"{used} arrays .* a int32 array of shape \(1000,\) at 0x"):
        shmem.shmem_finalize()
    assert mine.tolist() == [rank + 5] * 1000 and of_peer.tolist() == [rank + 5 if hosts.ARE_MANY else 6 - rank] * 1000
    assert view[3] == 9 and freed[4999] == 8
    mine[1] = 77  # for this process alone
    # Another job has other addresses, and memory of its own.
    place = mine.ctypes.data
    assert shmem.shmem_init(mem_size=HEAP) == 0
    again = shmem.tensor(1000, "int32")
    again[:] = 1
    assert (mine[0], mine[1], again.ctypes.data != place) == (rank + 5, 77, True)
    del again
    shmem.shmem_finalize()
    kept = f"{place & -4096:x}-"
    with open("/proc/self/maps") as maps:
        assert any(line.startswith(kept) for line in maps)
    del mine, view, of_peer, freed
    with open("/proc/self/maps") as maps:
        assert not any(line.startswith(kept) for line in maps)


def test_views_keep_their_bytes_after_the_end():
    jobs.run(views_after_the_end, 2)


def test_without_a_launcher_a_job_has_one_process(monkeypatch):
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert shmem.shmem_init(mem_size=HEAP) == 0
    assert (shmem.get_my_pe(), shmem.get_pe_count()) == (0, 1)
    shmem.shmem_finalize()
    with pytest.raises(ValueError, match="needs npes, since WORLD_SIZE is not set"):
        shmem.shmem_init(0)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="needs mype"):
        shmem.shmem_init()


def test_the_package_says_what_it_is():
    ended = subprocess.run(
        [sys.executable, "-m", "memspan"], capture_output=True, text=True, timeout=jobs.LIMIT_S
    )
    assert ended.returncode == 0, ended.stderr
    said = {}
    for line in ended.stdout.splitlines():  # those of memspan-info come last
        said.setdefault(*line.split(None, 1))
    assert said["memspan"] == shmem.__version__
    assert f"version: {shmem.__version__}" in ended.stdout
    assert os.path.isdir(said["headers"]) and os.path.isdir(said["libraries"])
    assert os.access(said["oshrun"], os.X_OK)
    assert said["numpy"] == np.__version__


# ---- codes and exceptions


def test_codes_or_exceptions(alone):
    assert shmem.shmem_init(0, 1, HEAP) < 0
    text = shmem.errors.last_error()
    assert text.startswith("shmem_init: ")
    shmem.errors.raise_on_error(True)
    try:
        with pytest.raises(shmem.errors.Error) as raised:
            shmem.shmem_init(0, 1, HEAP)
        assert raised.value.code < 0
        with pytest.raises(shmem.errors.InvalidArgument, match="level is 9"):
            shmem.set_log_level(9)
        with pytest.raises(shmem.errors.Error):
            shmem.shmem_malloc(2 * HEAP)
        with pytest.raises(shmem.errors.Error):
            shmem.shmem_calloc(2**33, 2**31)
    finally:
        shmem.errors.raise_on_error(False)


def test_mistakes_are_exceptions(alone):
    mine = shmem.shmem_malloc(64)
    with pytest.raises(ValueError, match="pe is 5, allowed are 0 to 0"):
        shmem.shmem_putmem(mine, mine, 8, 5)
    with pytest.raises(ValueError, match="not entirely in the symmetric heap"):
        shmem.shmem_putmem(12345, mine, 8, 0)
    with pytest.raises(ValueError, match="src has 4 bytes, needed are 8"):
        shmem.shmem_putmem(mine, b"1234", 8, 0)
    with pytest.raises(ValueError, match="read-only"):
        shmem.shmem_getmem(bytes(8), mine, 8, 0)
    with pytest.raises(TypeError):
        shmem.shmem_putmem("text", mine, 8, 0)
    with pytest.raises(ValueError, match="not a multiple"):
        shmem.shmem_int64_atomic_add(mine + 1, 1, 0)
    with pytest.raises(ValueError, match="sig_op is 3"):
        shmem.shmem_putmem_signal(mine, mine, 8, mine, 1, 3, 0)
    with pytest.raises(ValueError):
        shmem.team_split_strided(0, 0, 0, 1)
    with pytest.raises(ValueError, match="team is"):
        shmem.shmem_fcollect(mine, mine, 8, 77)
    # The job goes on after each of them.
    shmem.shmem_int32_p(mine, 12, 0)
    assert shmem.shmem_int32_g(mine, 0) == 12


def test_addresses_that_are_none_are_exceptions(alone):
    import mmap

    remote = shmem.shmem_malloc(1 << 16)
    pages = mmap.mmap(-1, 3 * mmap.PAGESIZE)
    kept = np.frombuffer(pages, "uint8")
    here = kept.ctypes.data
    for wild in (0, 8, 1 << 46, 2**64 - 8):
        with pytest.raises(ValueError, match=f"src is {wild}, and the 8 bytes .* not memory"):
            shmem.shmem_putmem(remote, wild, 8, pe=0)
        with pytest.raises(ValueError, match=f"dst is {wild}"):
            shmem.shmem_getmem(wild, remote, 8, pe=0)
        with pytest.raises(ValueError, match=f"source is {wild}"):
            shmem.shmem_int64_put(remote, wild, 1, 0)
        with pytest.raises(ValueError, match=f"dest is {wild}"):
            shmem.shmem_get64(wild, remote, 1, 0)
        with pytest.raises(ValueError, match="ivar"):
            shmem.shmem_int64_test(wild, shmem.CmpOp.CMP_EQ, 0)
    # The last byte counts as well: the address space ends somewhere behind it.
    with pytest.raises(ValueError, match="src is"):
        shmem.shmem_putmem(remote, here, 1 << 47, pe=0)
    shmem.shmem_putmem(remote, here, kept.nbytes, pe=0)
    shmem.shmem_getmem(here, remote, kept.nbytes, pe=0)
    shmem.shmem_putmem(remote, 0, 0, pe=0)
    shmem.shmem_free(remote)


# Old container runtimes forbid it, and some kernels and emulators have none.
def test_addresses_that_are_none_are_exceptions_without_process_vm_readv():
    program = r"""
import ctypes, platform, struct
import numpy as np
import shmem

# A filter by which process_vm_readv fails with ENOSYS, which is 38, and all else is allowed.
call = {"x86_64": 310, "aarch64": 270}[platform.machine()]
rows = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x00050000 | 38), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
filter = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
if libc.prctl(22, 2, filter) != 0:
    assert ctypes.get_errno() == 22, ctypes.get_errno()  # under an emulator without filters, which has none of it, too
assert libc.process_vm_readv(0, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == 38

shmem.shmem_init()
remote = shmem.shmem_malloc(1 << 16)
kept = np.zeros(1 << 16, "uint8")
for wild in (0, 8, 1 << 46, 2**64 - 8):
    try:
        shmem.shmem_putmem(remote, wild, 8, pe=0)
    except ValueError as error:
        assert f"src is {wild}" in str(error), error
    else:
        raise AssertionError(wild)
try:
    shmem.shmem_putmem(remote, kept.ctypes.data, 1 << 47, pe=0)
except ValueError as error:
    assert "src is" in str(error), error
shmem.shmem_putmem(remote, kept.ctypes.data, kept.nbytes, pe=0)
shmem.shmem_finalize()
print("refused")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "refused\n", done.stdout + done.stderr


def test_strides_are_part_of_the_bounds(alone):
    mine = shmem.shmem_calloc(64, 4)
    few = np.zeros(10, np.float32)
    with pytest.raises(ValueError, match="dest has 40 bytes, needed are 148"):
        shmem.shmem_float_iget(few, mine, 4, 1, 10, 0)
    with pytest.raises(ValueError, match="source has 40 bytes"):
        shmem.shmem_float_iput(mine, few, 1, 2, 10, 0)
    with pytest.raises(ValueError, match="stride is -1"):
        shmem.shmem_float_iput(mine, few, 1, -1, 3, 0)
    with pytest.raises(ValueError, match="read-only"):
        shmem.shmem_iget8(bytes(8), mine, 1, 1, 8, 0)
    few[:] = range(10)
    shmem.shmem_float_iput(mine, few, 2, 3, 4, 0)
    assert mine.numpy("float32")[:8:2].tolist() == [0, 3, 6, 9]


def test_numpys_numbers_are_addresses(alone):
    mine = shmem.shmem_calloc(1, 8)
    source = np.array([7], np.int64)
    shmem.shmem_putmem(np.uint64(mine), np.uint64(source.ctypes.data), 8, 0)
    assert shmem.shmem_int64_g(np.int64(mine), 0) == 7


def test_only_what_was_had_is_given_back(alone):
    mine = shmem.shmem_malloc(64)
    with pytest.raises(ValueError, match="beginning of memory"):
        shmem.shmem_free(mine + 8)
    shmem.shmem_free(mine)
    with pytest.raises(ValueError, match="beginning of memory"):
        shmem.shmem_free(mine)


def test_before_the_start_everything_says_so():
    with pytest.raises(shmem.errors.InvalidArgument, match="before shmem_init"):
        shmem.shmem_barrier_all()
    assert shmem.shmem_malloc(8) is None
    assert shmem.get_my_pe() == -1
    assert shmem.shmem_init_status() is shmem.InitStatus.NOT_INITIALIZED


def test_settings():
    attributes = shmem.InitAttr()
    assert shmem.shmem_set_attributes(0, 1, HEAP, "tcp://127.0.0.1:8666", attributes) == 0
    assert (attributes.n_ranks, attributes.local_mem_size) == (1, HEAP)
    assert shmem.shmem_set_timeout(attributes, 1500) == 0
    assert attributes.option_attr.shm_init_timeout == 2
    assert shmem.shmem_set_timeout(attributes, vaue=1) == 0
    assert attributes.option_attr.control_operation_timeout == 1
    both = shmem.OpEngineType.MTE | shmem.OpEngineType.ROCE
    assert shmem.shmem_set_data_op_engine_type(attributes, both) == 0
    assert attributes.option_attr.data_op_engine_type == both
    for wrong in (0, 16, -1):
        assert shmem.shmem_set_data_op_engine_type(attributes, wrong) == -2
        assert "MTE" in shmem.errors.last_error()
    for wrong in (0, -5):
        assert shmem.shmem_set_timeout(attributes, wrong) == -2
        assert "time-out" in shmem.errors.last_error()
    shmem.errors.raise_on_error(True)
    try:
        with pytest.raises(ValueError, match="UDMA"):
            shmem.shmem_set_data_op_engine_type(attributes, 16)
    finally:
        shmem.errors.raise_on_error(False)
    assert shmem.shmem_set_data_op_engine_type(attributes, shmem.OpEngineType.UDMA) == 0
    assert shmem.shmem_init(attributes) == 0
    assert shmem.shmem_init_status() == shmem.InitStatus.INITIALIZED
    shmem.shmem_finalize()


def test_a_logger_gets_the_lines():
    lines = []
    assert shmem.set_extern_logger(lambda level, text: lines.append((level, text))) == 0
    try:
        assert shmem.shmem_init(5, 2, HEAP) < 0
    finally:
        assert shmem.set_extern_logger(None) == 0
    assert any("my_rank is 5" in text for _, text in lines)


# ---- many words, and elements with a signal


@pytest.mark.parametrize("kind", ["int32", "int64", "uint32", "uint64"])
def test_waits_and_tests_of_many_words(alone, kind):
    def call(form, *arguments):
        return getattr(shmem, f"shmem_{kind}_{form}")(*arguments)

    words = shmem.tensor(6, kind)
    words[:] = [3, 1, 3, 3, 0, 3]
    no_word = 2**64 - 1
    left_out = np.array([0, 1, 0, 0, 1, 0], np.int32)
    everything = np.ones(6, np.int32)
    equal, greater = shmem.CmpOp.CMP_EQ, shmem.CmpOp.CMP_GT
    assert call("test_all", words, 6, None, equal, 3) == 0
    assert call("test_all", words, 6, left_out, equal, 3) == 1
    assert call("test_any", words, 6, None, equal, 1) == 1
    assert call("test_any", words, 6, None, greater, 7) == no_word
    assert sorted(call("test_some", words, 6, None, equal, 3)) == [0, 2, 3, 5]
    assert call("test_some", words, 6, everything, equal, 3) == []
    call("wait_until_all", words, 6, left_out, equal, 3)
    assert call("wait_until_any", words, 6, None, equal, 0) == 4
    assert call("wait_until_any", words, 6, everything, equal, 0) == no_word
    assert sorted(call("wait_until_some", words, 6, None, equal, 3)) == [0, 2, 3, 5]
    wanted = np.array([3, 1, 3, 4, 4, 4], kind)
    assert call("test_all_vector", words, 6, None, equal, wanted) == 0
    assert call("test_any_vector", words, 6, None, equal, wanted) in (0, 1, 2)
    assert sorted(call("test_some_vector", words, 6, None, equal, wanted)) == [0, 1, 2]
    call("wait_until_all_vector", words, 6, np.array([0, 0, 0, 1, 1, 1], np.int32), equal, wanted)
    assert call("wait_until_any_vector", words, 6, None, equal, wanted) in (0, 1, 2)
    assert sorted(call("wait_until_some_vector", words, 6, None, equal, wanted)) == [0, 1, 2]
    with pytest.raises(ValueError, match="status has 8 bytes, needed are 24"):
        call("test_all", words, 6, np.zeros(2, np.int32), equal, 3)
    with pytest.raises(ValueError, match="cmp_values has"):
        call("test_all_vector", words, 6, None, equal, wanted[:2])
    with pytest.raises(ValueError, match="cmp is 6"):
        call("test_all", words, 6, None, 6, 3)
    del words


@pytest.mark.parametrize("bits", [8, 16, 32, 64, 128])
@pytest.mark.parametrize("form", ["signal", "signal_nbi"])
def test_elements_of_each_size_with_a_signal(alone, bits, form):
    put = getattr(shmem, f"aclshmemx_put{bits}_{form}")
    assert put is getattr(shmem, f"shmem_put{bits}_{form}")
    assert put is getattr(shmem, f"aclshmem_put{bits}_{form}")
    box, word = shmem.tensor(100, "uint8"), shmem.shmem_calloc(2, 4)
    source = np.arange(1, 101, dtype=np.uint8)
    put(box, source, 3, word, 5, shmem.SignalOp.SIGNAL_SET, 0)
    put(box, source, 3, word, 2, shmem.SignalOp.SIGNAL_ADD, 0)
    shmem.shmem_quiet()
    moved = 3 * bits // 8
    assert box[:moved].tolist() == source[:moved].tolist() and not box[moved:].any()
    assert word.numpy("int32").tolist() == [7, 0]
    with pytest.raises(ValueError, match="sig_op is 3"):
        put(box, source, 3, word, 5, 3, 0)
    for many in (101, 2**61, 2**64 - 1):
        with pytest.raises(ValueError, match="dest has 100 bytes"):
            put(box, source, many, word, 5, 0, 0)
    del box


@pytest.mark.parametrize("form", ["put", "get"])
def test_counts_beyond_all_memory_are_refused(alone, form):
    box, mine = shmem.tensor(4, "int64"), np.zeros(4, np.int64)
    target, source = (box, mine) if form == "put" else (mine, box)
    for count in (5, 2**61, 2**61 + 1, 2**64 - 1):
        with pytest.raises(ValueError, match="dest has 32 bytes"):
            getattr(shmem, f"shmem_int64_{form}")(target, source, count, 0)
        with pytest.raises(ValueError, match="dest has 32 bytes"):
            getattr(shmem, f"shmem_{form}64")(target, source, count, 0)
    del box, target, source


# ---- the object style


def with_objects(rank, ranks):
    from shmem import core

    text = jobs.from_first(rank, core.get_unique_id)
    assert isinstance(text, bytes)
    uid = text
    if rank != 0:
        uid = core.get_unique_id(empty=True)
        uid.internal = text.ljust(512, b"\0")  # as in a buffer that was broadcast
    core.init(uid=uid, rank=rank, nranks=ranks, initializer_method="uid", mem_size=HEAP)
    assert core.direct.my_pe() == rank and core.direct.n_pes() == ranks
    other = (rank + 1) % ranks
    box = core.buffer(64)
    signal = core.buffer(4)
    signal.view()[:] = bytes(4)
    shmem.shmem_barrier_all()
    core.put_signal(box, bytes([rank] * 64), signal, 1, core.SignalOp.SIGNAL_SET, other)
    core.signal_wait(signal, 1, core.ComparisonType.CMP_EQ)
    assert bytes(box.view()) == bytes([other] * 64)
    if hosts.ARE_MANY:
        with pytest.raises(core.AclshmemError, match=f"process {other} is on another host"):
            core.get_peer_buffer(box, other)
    else:
        assert bytes(core.get_peer_buffer(box, other).view()) == bytes([rank] * 64)
    with pytest.raises(core.AclshmemInvalid, match="only 64"):
        core.put(box, bytes(65), other)
    shmem.shmem_barrier_all()
    core.free(signal)
    core.free(box)
    core.finalize()


def test_objects(tmp_path):
    jobs.run(with_objects, 2, MEMSPAN_TEST_FILE=str(tmp_path / "uid"))


def test_objects_say_what_they_need():
    from shmem import core

    assert core.get_version().startswith("libaclshmem_version=")
    with pytest.raises(core.AclshmemInvalid, match="uid"):
        core.init(rank=0, nranks=1)
    with pytest.raises(core.AclshmemInvalid, match="initializer_method"):
        core.init(uid=b"", rank=0, nranks=1, initializer_method="mpi")


@pytest.mark.parametrize("name", "char float int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_waits_that_write_their_result(alone, name):
    of = {"char": "int8", "float": "float32"}.get(name, name)
    words = shmem.tensor(5, of)
    result, indices = np.zeros(1, "uint64"), np.zeros(5, "uint64")
    flag, holds = shmem.CmpOp.CMP_GE, np.zeros(1, "int32")

    def call(form, *arguments):
        return getattr(shmem, f"aclshmem_{name}_{form}")(*arguments)

    values = np.array([9, 7, 9, 3, 9], of)
    assert call("test", words, flag, 7, holds) == holds[0] == 0
    assert call("test_any", words, 5, None, flag, 7, result) == result[0] == 2**64 - 1
    assert call("test_some", words, 5, indices, None, flag, 7, result) == [] and result[0] == 0
    words[1], words[3] = 7, 7
    assert call("test", words[1:], flag, 7, holds) == holds[0] == 1
    assert call("test_all_vector", words, 5, None, flag, values, holds) == holds[0] == 0
    assert call("wait_until_any", words, 5, None, flag, 7, result) == result[0] and result[0] in (1, 3)
    assert sorted(call("wait_until_some", words, 5, indices, None, flag, 7, result)) == [1, 3]
    assert result[0] == 2 and sorted(indices[:2]) == [1, 3]
    for form in ("wait_until_some_vector", "test_some_vector"):
        assert sorted(call(form, words, 5, indices, None, flag, values, result)) == [1, 3]
    for form in ("wait_until_any_vector", "test_any_vector"):
        assert call(form, words, 5, None, flag, values, result) in (1, 3)
    # The other form, without what is written.
    assert sorted(call("wait_until_some", words, 5, None, flag, 7)) == [1, 3]
    skipped = np.array([1, 0, 1, 0, 1], "int32")
    call("wait_until_all", words, 5, skipped, flag, 7)
    call("wait_until_all_vector", words, 5, skipped, flag, values)
    call("wait_until", words[1:], flag, 7)
    words[4] = -1 if name in ("char", "float", "int8", "int16", "int32", "int64") else 200
    call("wait_until", words[4:], shmem.CmpOp.CMP_EQ, int(words[4]))
    if name == "char":
        words[4] = ord("m")
        call("wait_until", words[4:], shmem.CmpOp.CMP_EQ, "m")
    with pytest.raises(ValueError, match="res_out is 8"):
        call("test", words, flag, 7, 8)
    with pytest.raises(TypeError, match="indices: .*status: "):
        call("wait_until_some", words, 5, None, flag)
    with pytest.raises(ValueError, match="symmetric heap"):
        call("wait_until", np.zeros(1, of), flag, 0)
    del words


@pytest.mark.parametrize("name", "char float int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_wait_ends_when_the_word_is_another(alone, name):
    wait = getattr(shmem, f"aclshmem_{name}_wait")
    words = shmem.tensor(3, {"char": "int8", "float": "float32"}.get(name, name))
    words[:] = 7
    alarms = []

    def change(*_):
        alarms.append(len(alarms))
        words[1] = 8

    previous = signal.signal(signal.SIGALRM, change)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        wait(words[1:], 7)
        assert alarms == [0] and words.tolist() == [7, 8, 7]
        wait(words, 6)
        wait(words, 8)
        assert alarms == [0]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    with pytest.raises(ValueError, match="symmetric heap"):
        wait(np.zeros(1, words.dtype), 7)
    with pytest.raises(TypeError):
        wait(words, None)
    del words


def test_tensors_as_the_later_generation_makes_them(alone):
    torch = pytest.importorskip("torch", reason="needs=torch")
    made = shmem.aclshmem_create_tensor((3, 4))
    assert (made.shape, made.dtype, made.sum().item()) == ((3, 4), torch.float32, 0)
    assert shmem.calc_nbytes((3, 4), torch.bfloat16) == 24
    made[2, 3] = 5
    view = shmem.construct_tensor_from_ptr(made.data_ptr(), (2,), torch.float32, "cpu", (1,), 10)
    assert view.tolist() == [0, 5]
    local = torch.arange(6)
    there = shmem.construct_tensor_from_ptr(local.data_ptr(), (2, 3), torch.int64, "cpu", (1, 2))
    assert there.tolist() == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ValueError, match="not memory"):
        shmem.construct_tensor_from_ptr(64, 3, torch.int8)
    with pytest.raises(ValueError, match="allowed is cpu"):
        shmem.construct_tensor_from_ptr(local.data_ptr(), 3, torch.int8, "meta")
    assert shmem.aclshmem_create_tensor(0, torch.int8).shape == (0,)
    del view
    shmem.aclshmem_free_tensor(made)
    with pytest.raises(ValueError, match="symmetric heap"):
        shmem.aclshmem_free_tensor(local)


def logs_into_a_file(rank, ranks):
    """In a process of its own: who has logged much lately logs no more for some seconds."""
    from shmem import core

    path = os.environ["MEMSPAN_TEST_LOG"]
    core.utils.setup_aclshmem_logger("ERROR", path)
    assert shmem.shmem_set_timeout(shmem.InitAttr(), 0) == -2
    shmem.set_extern_logger(None)
    with open(path, encoding="utf-8") as file:
        assert "time-out is 0 ms" in file.read()


def test_the_later_generations_parts(tmp_path):
    from shmem import core

    assert shmem.SHMEM_STATUS_IS_INITIALIZED is shmem.InitStatus.INITIALIZED
    assert shmem.shmem_init(0, 1, HEAP) == 0
    assert shmem.aclshmem_finalize() == 0
    assert core.UniqueID is shmem.UniqueId
    assert core.utils.AclshmemError("text").msg == "text"
    assert core.utils.Buffer(8, 4).length == 4
    assert core.rma.put is core.put and core.memory.buffer is core.buffer
    assert core.init_final.init is core.init
    with pytest.raises(core.AclshmemInvalid, match="log_level"):
        core.utils.setup_aclshmem_logger("loud")
    jobs.run(logs_into_a_file, 1, MEMSPAN_TEST_LOG=str(tmp_path / "log"))


def test_struct_pack_is_memory_too(alone):
    place = shmem.shmem_malloc(8)
    shmem.shmem_putmem(place, struct.pack("<q", -3), 8, 0)
    assert shmem.shmem_int64_g(place, 0) == -3
