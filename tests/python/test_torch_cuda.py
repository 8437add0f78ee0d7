# SPDX-License-Identifier: Apache-2.0
"""Symmetric tensors in memory of a GPU. On the stand-in of the CUDA driver, any load or store of their
memory by the host would end the process."""

import gc

import pytest

torch = pytest.importorskip("torch", reason="needs=torch")

import gpu  # noqa: E402
from memspan.torch import cuda, native  # noqa: E402
from memspan.torch import symmetric_memory as sm  # noqa: E402
from memspan.torch.heap import heap  # noqa: E402

pytestmark = gpu.needs_gpu

TYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64]
TYPES += [torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128]


def numbers(count, dtype, seed):
    values = torch.arange(count) * 7 + seed * 31
    return (values % 2 if dtype == torch.bool else values % 100).to(dtype)


# ---- on two hosts


def on_two_hosts(rank, ranks):
    device = gpu.Gpu()
    box, other = sm.empty(4, device="cuda"), 1 - rank
    handle = sm.rendezvous(box)
    for refused in (
        lambda: heap().peer(box, other),
        lambda: handle.get_buffer(other, (4,), torch.float32),
        lambda: handle.buffer_ptrs,
    ):
        with pytest.raises(ValueError, match=f"rank {other} is on another host than rank {rank}"):
            refused()
    stream = device.stream()
    for round in range(5):
        sm.shmem_put(box, 0, torch.full((4,), rank + round + 0.5), 0, 4, other, stream=stream)
        handle.put_signal(other, stream=stream)
        handle.wait_signal(other, stream=stream)
        got = torch.zeros(4)
        sm.shmem_get(got, 0, box, 0, 4, rank, stream=stream)
        assert got.eq(other + round + 0.5).all()
        handle.barrier(channel=1, stream=stream)
    device.synchronize(stream)


def check_the_refusal():
    """Peers' tensors are refused there; put, get and signals are not."""
    gpu.run(on_two_hosts, 2)


one_host = pytest.mark.one_host(reason="peers' memory is a tensor", instead=check_the_refusal)


# ---- memory


def tensors(rank, ranks):
    device = gpu.Gpu()
    after = (rank + 1) % ranks
    for dtype in TYPES:
        made = sm.empty((3, 5), dtype, device="cuda")
        assert (made.shape, made.dtype, made.is_contiguous()) == ((3, 5), dtype, True)
        assert made.device == torch.device("cuda:0")
        assert heap().is_symmetric(made)
        assert device.load(made).eq(0).all()
        device.store(made, numbers(15, dtype, rank).view(3, 5))
        sm.barrier()
        there = heap().peer(made, after)
        assert (there.shape, there.stride(), there.device) == (made.shape, made.stride(), made.device)
        assert torch.equal(device.load(there), numbers(15, dtype, after).view(3, 5))
        sm.barrier()
    assert sm.empty([2, 0], device="cuda:0").shape == (2, 0)
    assert sm.empty((), device="cuda").numel() == 1
    assert not heap().is_symmetric(device.tensor(torch.ones(3)))
    assert heap().is_symmetric(sm.empty(3)) and sm.empty(3).device.type == "cpu"


@one_host
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_tensors(ranks):
    gpu.run(tensors, ranks)


def garbage(rank, ranks):
    """More than the heap has, in all; every rank drops in another order."""
    device = gpu.Gpu()
    stream = device.stream()
    ones = torch.ones(1 << 20, dtype=torch.uint8)
    kept = []
    for _ in range(60):
        kept.append(sm.empty(1 << 20, torch.uint8, device="cuda"))
        assert device.load(kept[-1]).sum() == 0
        sm.shmem_put(kept[-1], 0, ones, 0, 1 << 20, rank, stream=stream)
        if len(kept) == 4 + rank:
            kept.pop(rank % len(kept))
        if rank == 0:
            gc.collect()
    last = kept.pop()
    kept.clear()
    assert device.load(last).sum() == 1 << 20
    with pytest.raises(ValueError, match="1073741824 bytes do not fit"):
        sm.empty(1 << 30, torch.uint8, device="cuda")
    assert device.load(sm.empty(1 << 20, torch.uint8, device="cuda")).sum() == 0


def test_dropped_tensors_are_given_back_once_all_have_dropped_them():
    gpu.run(garbage, 3)


def dropped_while_in_use(rank, ranks):
    """A put that its stream has not come to keeps both ends, and a later tensor is elsewhere."""
    device = gpu.Gpu()
    stream = device.stream()
    box, source = sm.empty(1000, device="cuda"), device.tensor(torch.ones(1000))
    place = box.data_ptr()
    with device.held(stream):
        sm.shmem_put(box, 0, source, 0, 1000, rank, stream=stream)
        del box, source
        gc.collect()
        other = sm.empty(1000, device="cuda")
        assert other.data_ptr() != place
    device.synchronize(stream)
    assert device.load(other).eq(0).all()
    again = sm.empty(1000, device="cuda")
    assert again.data_ptr() == place and device.load(again).eq(0).all()


def test_a_tensor_that_a_stream_still_uses_is_not_given_back():
    gpu.run(dropped_while_in_use, 2)


# ---- one-sided


def one_sided(rank, ranks):
    device = gpu.Gpu()
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    stream = device.stream()
    for dtype in TYPES:
        box = sm.empty(10, dtype, device="cuda")
        mine = numbers(10, dtype, rank)
        sm.barrier()
        # From the CPU: done on return, as far as mine goes.
        sm.shmem_put(box, 2, mine, torch.tensor([3]), torch.tensor(4), after, stream=stream)
        mine.zero_()
        sm.barrier()
        assert torch.equal(device.load(box)[2:6], numbers(10, dtype, before)[3:7])
        # To the CPU: there on return.
        got = torch.zeros(10, dtype=dtype)
        sm.shmem_get(got, 1, box, 2, 4, after, stream=stream)
        assert torch.equal(got[1:5], numbers(10, dtype, rank)[3:7])
        sm.barrier()
        # From other memory of the GPU and from symmetric, and back.
        for source in (device.tensor(numbers(10, dtype, rank)), sm.empty(10, dtype, device="cuda")):
            device.store(source, numbers(10, dtype, rank))
            sm.shmem_put(box, 0, source, 0, 10, after, stream=stream)
            sm.barrier()
            assert torch.equal(device.load(box), numbers(10, dtype, before))
            target = device.tensor(torch.zeros(10, dtype=dtype))
            sm.shmem_get(target, 0, box, 0, 10, after, stream=stream)
            device.synchronize(stream)
            assert torch.equal(device.load(target), numbers(10, dtype, rank))
            sm.barrier()
        # Between the CPU's symmetric memory and the GPU's.
        hosts = sm.empty(10, dtype)
        sm.barrier()
        sm.shmem_put(hosts, 0, source, 0, 10, after, stream=stream)
        sm.barrier()
        assert torch.equal(hosts, numbers(10, dtype, before))
        sm.shmem_put(box, 10, mine, 0, 0, after, stream=stream)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_one_sided(ranks):
    gpu.run(one_sided, ranks)


def in_order(rank, ranks):
    """A stream that has not come to it leaves everything as it is, and calls return."""
    device = gpu.Gpu()
    stream = device.stream()
    box, first, second = (sm.empty(4, device="cuda") for _ in range(3))
    signal = sm.empty(1, torch.int32, device="cuda")
    device.store(first, torch.full((4,), 1.0))
    device.store(second, torch.full((4,), 2.0))
    with device.held(stream):
        sm.shmem_put(box, 0, first, 0, 4, rank, stream=stream)
        sm.shmem_put(first, 0, box, 0, 4, rank, stream=stream)
        sm.shmem_put_with_signal(box, 0, second, 0, 4, signal, 0, 5, 0, rank, stream=stream)
        sm.shmem_wait_for_signal(None, signal, 0, 5, 0, stream=stream)
        assert device.load(box).eq(0).all() and device.load(signal) == 0
    device.synchronize(stream)
    assert device.load(box).eq(2).all() and device.load(first).eq(1).all()
    assert device.load(signal) == 5


def test_a_stream_does_them_in_its_order():
    gpu.run(in_order, 2)


class Current:
    """What torch.cuda.current_stream() gives, where PyTorch has CUDA."""

    def __init__(self, cuda_stream):
        self.cuda_stream = cuda_stream


def current_stream(rank, ranks):
    device = gpu.Gpu()
    stream = device.stream()
    asked = []
    torch.cuda.current_stream = lambda ordinal: asked.append(ordinal) or Current(stream)
    box = sm.empty(4, device="cuda")
    ones = device.tensor(torch.ones(4))
    with device.held(stream):
        sm.shmem_put(box, 0, ones, 0, 4, rank)
        assert device.load(box).eq(0).all()
    sm.barrier()
    assert device.load(box).eq(1).all() and asked == [0]
    other = device.stream()
    with device.held(stream):
        sm.shmem_put(box, 0, torch.zeros(4), 0, 4, rank, stream=Current(other))
        assert device.load(box).eq(0).all() and asked == [0]
    assert cuda.stream_at(Current(0), 0).handle == 1, "the default stream by its number"


def test_the_current_stream_is_taken():
    gpu.run(current_stream, 1)


# ---- signals


def signals(rank, ranks):
    device = gpu.Gpu()
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    stream = device.stream()
    box = sm.empty(1000, device="cuda")
    set_word = sm.empty(8, torch.int32, device="cuda")
    added_word = sm.empty(8, torch.int32)  # of the CPU: a GPU's memory has no adding
    got = device.tensor(torch.zeros(1000))
    for round in range(1, 21):
        mine = device.tensor(torch.full((1000,), float(rank * 100 + round)))
        sm.shmem_put_with_signal(
            box, 0, mine, 0, 1000, set_word, 3, round, 0, after, stream=stream
        )
        sm.shmem_wait_for_signal(box, set_word, 3, torch.tensor([round]), 0, stream=stream)
        sm.shmem_get(got, 0, box, 0, 1000, rank, stream=stream)
        # The next round's values come when these were read, as the stream or the program says.
        if round % 2:
            sm.shmem_put_with_signal(box, 0, mine, 0, 0, added_word, 1, 1, 1, before, stream=stream)
        device.synchronize(stream)
        if round % 2 == 0:
            sm.shmem_signal_op(added_word, 1, 1, 1, before)
        assert device.load(got).eq(before * 100 + round).all(), round
        sm.shmem_wait_for_signal(box, added_word, 1, round - 1, 1, stream=stream)
        sm.barrier(stream=stream)
    device.synchronize(stream)
    assert added_word[1] == 20
    sm.shmem_signal_op(set_word, 0, 4, 0, after, stream=stream)
    sm.shmem_wait_for_signal(None, set_word, 0, 3, 1, stream=stream)
    device.synchronize(stream)
    assert device.load(set_word)[0] == 4
    sm.shmem_signal_op(added_word, 0, -4, 0, after)
    sm.shmem_wait_for_signal(box, added_word, 0, 0, 2, stream=stream)
    device.synchronize(stream)
    assert added_word[0] == -4


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_signals(ranks):
    gpu.run(signals, ranks)


def handles(rank, ranks):
    device = gpu.Gpu()
    stream = device.stream()
    sm.set_signal_pad_size(4 * ranks * 3)
    tensor = sm.empty((2, 8), device="cuda")
    handle = sm.rendezvous(tensor)
    assert (handle.rank, handle.world_size, handle.buffer_size) == (rank, ranks, 64)
    assert handle.offset == 0 and handle.buffer_ptrs[rank] == tensor.data_ptr()
    device.store(tensor, torch.full((2, 8), float(rank)))
    handle.barrier(stream=stream)
    device.synchronize(stream)
    for peer in range(ranks):
        there = handle.get_buffer(peer, (4, 2), torch.float32, 8)
        assert there.device == tensor.device and device.load(there).eq(peer).all()
        assert there.data_ptr() == handle.buffer_ptrs[peer] + 32
        assert handle.get_signal_pad(peer).numel() == 3 * ranks
    after, before = (rank + 1) % ranks, (rank - 1) % ranks
    for round in range(30 if ranks > 1 else 0):
        value = device.tensor(torch.full((1,), float(round)))
        sm.shmem_put(tensor, 0, value, 0, 1, after, stream=stream)
        handle.put_signal(after, channel=1, stream=stream)
        handle.wait_signal(before, channel=1, stream=stream)
        device.synchronize(stream)
        assert device.load(tensor)[0, 0] == round
        handle.barrier(channel=2, stream=stream)
    # A second signal comes when the first one was taken.
    if ranks > 1:
        handle.put_signal(after, stream=stream)
        handle.put_signal(after, stream=stream)
        other = device.stream()
        handle.wait_signal(before, stream=other)
        handle.wait_signal(before, stream=other)
        device.synchronize(stream)
        device.synchronize(other)
    sm.barrier()
    assert device.load(handle.get_signal_pad(rank, dtype=torch.int32)).eq(0).all()
    for wrong, what in [
        (lambda: handle.put_signal(0, channel=3, stream=stream), "channel is 3"),
        (lambda: handle.put_signal(ranks, stream=stream), "rank is"),
        (lambda: handle.wait_signal(0, timeout_ms=5, stream=stream), "timeout_ms is 5"),
        (lambda: handle.get_buffer(0, (16,), torch.float32, 1), "end at byte 68"),
        (lambda: sm.rendezvous(sm.empty(2)).put_signal(0, stream=stream), "of the CPU"),
    ]:
        with pytest.raises(ValueError, match=what):
            wrong()


@one_host
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rendezvous(ranks):
    gpu.run(handles, ranks)


# ---- which GPU


def second_gpu(rank, ranks):
    device = gpu.Gpu()
    box = sm.empty(4, device="cuda:1")
    assert box.device == torch.device("cuda:1") == sm.empty(4, device="cuda").device
    with pytest.raises(ValueError, match="is on cuda:1: MEMSPAN_DEVICE=cuda:0 chooses"):
        sm.empty(4, device="cuda:0")
    sm.shmem_put(box, 0, torch.ones(4), 0, 4, (rank + 1) % ranks, stream=device.stream())
    sm.barrier()
    assert device.load(box).eq(1).all()


@gpu.needs_standin
def test_the_first_tensor_says_which_gpu():
    gpu.run(second_gpu, 2, MEMSPAN_TEST_CUDA_DEVICES="2")


def chosen_gpu(rank, ranks):
    gpu.Gpu()  # the current one is number 0
    assert sm.empty(4, device="cuda").device == torch.device("cuda:1")


@gpu.needs_standin
def test_the_variable_says_which_gpu():
    gpu.run(chosen_gpu, 2, MEMSPAN_TEST_CUDA_DEVICES="2", MEMSPAN_DEVICE="cuda:1")


# ---- what streams keep


class Kept:
    """Says when it is gone."""

    def __init__(self, gone):
        self._gone = gone

    def __del__(self):
        self._gone.append(True)


def keeping(rank, ranks):
    device = gpu.Gpu()
    handle, other, gone = device.stream(), device.stream(), []
    with device.held(handle):
        cuda.stream_at(handle, 0).keep(Kept(gone))
        with pytest.raises(TimeoutError, match="has not come to its end in 10 ms"):
            cuda.stream_at(handle, 0).wait(10)
        cuda.stream_at(other, 0).keep(Kept(gone))
        cuda.stream_at(other, 0).wait()
        assert len(gone) == 1, "streams do not wait for each other"
    device.synchronize(handle)
    assert len(gone) == 1
    cuda.drop_finished()
    assert len(gone) == 2
    values = device.tensor(torch.ones(3))
    assert cuda.ordinal_of(values.data_ptr()) == 0
    with pytest.raises(RuntimeError, match="cuPointerGetAttribute: CUDA_ERROR_INVALID_VALUE"):
        cuda.ordinal_of(torch.ones(1).data_ptr())


def test_a_stream_keeps_what_it_uses():
    gpu.run(keeping, 1)


# ---- mistakes


def mistakes(rank, ranks):
    device = gpu.Gpu()
    stream = device.stream()
    with pytest.raises(ValueError, match="no symmetric tensor of a GPU yet"):
        sm.barrier(stream=stream)
    box, signal = sm.empty(4, device="cuda"), sm.empty(2, torch.int32, device="cuda")
    mine, here = device.tensor(torch.ones(4)), torch.ones(4)
    from memspan import _core

    strided = cuda.tensor_at(box.data_ptr(), (2,), (2,), torch.float32, 0)
    elsewhere = cuda.tensor_at(box.data_ptr(), (4,), (1,), torch.float32, 1)
    for wrong, what in [
        (lambda: sm.empty(4, device="meta"), 'device is "meta", allowed are cpu and cuda'),
        (lambda: sm.empty(4, device="cuda:1"), "CUDA_ERROR_INVALID_DEVICE"),
        (lambda: sm.shmem_put(box, 0, mine, 0, 4, ranks, stream=stream), "target_rank is"),
        (lambda: sm.shmem_put(box, 1, mine, 0, 4, 0, stream=stream), r"\[1, 5\)"),
        (lambda: sm.shmem_put(mine, 0, mine, 0, 4, 0, stream=stream), "target is not a symmetric"),
        (lambda: sm.shmem_get(mine, 0, mine, 0, 4, 0, stream=stream), "src is not a symmetric"),
        (lambda: sm.shmem_put(box, 0, here.double(), 0, 4, 0, stream=stream), "float64"),
        (lambda: sm.shmem_put(strided, 0, mine, 0, 2, 0, stream=stream), "not contiguous"),
        (lambda: sm.shmem_put(box, 0, elsewhere, 0, 4, 0, stream=stream), "different GPUs"),
        (lambda: sm.shmem_put(box, 0, here.to("meta"), 0, 4, 0, stream=stream), "src is on meta"),
        (lambda: sm.shmem_put(box, 0, mine, 0, 4, 0, stream="first"), "stream is 'first'"),
        (lambda: sm.shmem_put(sm.empty(4), 0, here, 0, 4, 0, stream=stream), "no tensor is a GPU's"),
        (lambda: sm.shmem_signal_op(signal, 0, 1, 1, 0, stream=stream), "only its kernels add"),
        (lambda: sm.shmem_signal_op(signal, 2, 1, 0, 0, stream=stream), "signal has 2"),
        (lambda: sm.shmem_signal_op(box, 0, 1, 0, 0, stream=stream), "signal is of torch.float32"),
        (lambda: sm.shmem_wait_for_signal(None, signal, 0, 1, 3, stream=stream), "compare_op is 3"),
        (lambda: sm.shmem_wait_for_signal(None, signal, 0, 1, 2, stream=stream), "compare_op is 2"),
        (lambda: sm.shmem_wait_for_signal(None, signal, 0, 2**31 - 1, 1, stream=stream), "largest"),
        (lambda: sm.shmem_allgather(box, sm.empty(4 // ranks)), "output_tensor is on cuda:0"),
        (lambda: sm.shmem_alltoall([mine] * ranks, here, [0] * ranks), r"send_tensor_list\[0\] is on"),
        (lambda: sm.fused_matmul_reduce_scatter(box, here), "x1 is on cuda:0"),
        (lambda: sm.fused_all_gather_matmul(here, here, here, box), "gather_out is on cuda:0"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=what):
            wrong()
    address = _core.Address(box.data_ptr())
    with pytest.raises(BufferError, match="memory of a device"):
        memoryview(address)
    sm.barrier()
    assert device.load(box).eq(0).all()


def test_mistakes_are_told():
    gpu.run(mistakes, 2)


def not_enabled(rank, ranks):
    with pytest.raises(ValueError, match="set MEMSPAN_DEVICE=cuda in every process"):
        sm.empty(4, device="cuda")
    gpu.Gpu()
    other = cuda.tensor_at(4096, (4,), (1,), torch.float32, 0)
    with pytest.raises(ValueError, match="set MEMSPAN_DEVICE=cuda in every process"):
        sm.shmem_put(sm.empty(4), 0, other, 0, 4, 0)


def test_without_the_variable_it_is_said_what_to_set():
    gpu.run(not_enabled, 1, MEMSPAN_DEVICE="host")


def no_driver(rank, ranks):
    with pytest.raises(RuntimeError, match="no CUDA driver"):
        sm.empty(4, device="cuda:0")
    with pytest.raises((RuntimeError, ValueError), match="no CUDA driver"):
        sm.empty(4, device="cuda")


@gpu.needs_standin
def test_without_a_driver_it_is_said_that_there_is_none():
    gpu.run(no_driver, 1)


def backend(rank, ranks):
    """The backend of torch.distributed refuses tensors of a GPU."""
    import torch.distributed as dist

    device = gpu.Gpu()
    dist.init_process_group("memspan")
    values = device.tensor(torch.ones(4))
    with pytest.raises(RuntimeError, match="No backend type associated with device type cuda"):
        dist.all_reduce(values)  # PyTorch's words: the backend is registered for the CPU
    with pytest.raises(TypeError, match='got one of cuda:0; a group of "cpu:memspan,cuda:nccl"'):
        dist.all_gather([values], torch.ones(4))
    dist.destroy_process_group()


def test_the_backend_of_torch_distributed_refuses_them():
    native.build("process_group")  # which takes longer than a job may on a busy machine
    gpu.run(backend, 1)


def job_ends(rank, ranks):
    """The memory ends with the job, and what is left of a tensor is no symmetric one."""
    from memspan import _core

    gpu.Gpu()
    box = sm.empty(4, device="cuda")
    sm.barrier()
    assert _core.shmem.finalize() == 0
    assert _core.bytes_from(box.data_ptr()) == 0
    del box
    gc.collect()


def test_a_tensor_may_outlive_the_job():
    gpu.run(job_ends, 2)
