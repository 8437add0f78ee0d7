# SPDX-License-Identifier: Apache-2.0
"""The backend of process_group.py without a compiler: the same calls, some microseconds slower.

A collective that is waited for at once runs on the calling thread, and so does another when all ranks
come to it at about the same time; the others run on a thread of the group, in the order of the calls.
Messages move while somebody waits for one; a thread of the group waits for
those that nobody waits for.
"""

import itertools
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist
from memspan import _core
from memspan.torch.collective_queue import CollectiveQueue
from torch.futures import Future

_c = _core.group
_Op = dist.ReduceOp

_TYPES = {
    torch.int8: 0,
    torch.uint8: 1,
    torch.bool: 1,
    torch.int16: 2,
    torch.uint16: 3,
    torch.int32: 4,
    torch.uint32: 5,
    torch.int64: 6,
    torch.uint64: 7,
    torch.float16: 8,
    torch.bfloat16: 9,
    torch.float32: 10,
    torch.float64: 11,
    torch.complex64: 12,
    torch.complex128: 13,
}
_SUM, _PRODUCT, _MIN, _MAX, _AND, _OR, _XOR, _AVERAGE = range(8)
_OPERATIONS = [
    (_Op.SUM, _SUM, _OR),
    (_Op.PRODUCT, _PRODUCT, _AND),
    (_Op.MIN, _MIN, _AND),
    (_Op.MAX, _MAX, _OR),
    (_Op.BAND, _AND, _AND),
    (_Op.BOR, _OR, _OR),
    (_Op.BXOR, _XOR, _XOR),
    (_Op.AVG, _AVERAGE, None),
]  # of numbers, of bools
_HELP_MS = 20
_PATIENCE_US = 5000  # as in csrc/process_group.cc
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SILENCE_S = 1e-4, 1e-2, 3  # as in csrc/store_exchange.h
_LOOK_S = 1e-3

_live = weakref.WeakSet()  # groups that nobody has shut down


def _check(code):
    if code == _c.OK:
        return
    text = _core.last_error()
    raise ValueError(text) if code == _c.INVALID_PARAM else dist.DistBackendError(text)


def _kind(tensor, operation):
    """The numbers of a reduction in memspan/group.h."""
    if tensor.dtype not in _TYPES:
        raise TypeError(f"the backend memspan reduces no tensors of {tensor.dtype}")
    for theirs, of_numbers, of_bools in _OPERATIONS:
        if operation == theirs:
            ours = of_bools if tensor.dtype == torch.bool else of_numbers
            if ours is not None:
                return _TYPES[tensor.dtype], ours
    raise ValueError(f"the backend memspan has no reduction {operation} of {tensor.dtype}")


def _only(tensors):
    if len(tensors) != 1:
        raise ValueError(f"expected 1 tensor, got {len(tensors)}")
    return tensors[0]


def _checked(tensor):
    if tensor.device.type != "cpu" or tensor.layout != torch.strided:
        raise TypeError(
            f"the backend memspan moves dense tensors of the CPU, and got {tensor.layout} of "
            f"{tensor.device}"
        )
    return tensor


def _to_read(tensor):
    return _checked(tensor).contiguous()


def _check_alike(one, other, times=1):
    if one.dtype != other.dtype:
        raise TypeError(f"tensors of {one.dtype} and {other.dtype} in one call")
    if one.numel() != other.numel() * times:
        raise ValueError(f"a tensor has {one.numel()} elements, needed are {other.numel() * times}")


class _Result:
    """Where a result goes that is without gaps: the tensor, or memory that is copied to it."""

    def __init__(self, tensor, has_values=False):
        self.tensor = _checked(tensor)
        self.flat = tensor
        if not tensor.is_contiguous():
            like = torch.clone if has_values else torch.empty_like
            self.flat = like(tensor, memory_format=torch.contiguous_format)

    def finish(self):
        if self.flat is not self.tensor:
            self.tensor.copy_(self.flat)


def _addresses(tensors, step=None, count=None):
    """Of tensors; or of ``count`` parts of one, ``step`` bytes apart."""
    if count is None:
        return [tensor.data_ptr() for tensor in tensors]
    return [tensors.data_ptr() + step * part for part in range(count)]


def _wait_for(store, keys, rank, timeout):
    """By looking, as csrc/store_exchange.h does."""
    begin = time.monotonic()
    limit = timeout.total_seconds()
    pause = _FIRST_PAUSE_S
    is_silent = True
    while not store.check(keys):
        waited = time.monotonic() - begin
        if waited >= limit or (is_silent and waited > _SILENCE_S):
            missing = ", ".join(str(r) for r, key in enumerate(keys) if not store.check([key]))
            if waited >= limit:
                raise dist.DistBackendError(f"rank {missing} did not come within {limit} s")
            is_silent = False
            warnings.warn(
                f"memspan: rank {rank} waits for rank {missing} to make a process group, for "
                f"{limit} s at most",
                stacklevel=2,
            )
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _exchange_by(store, rank, size, timeout):
    """Gives everybody's bytes to all, by the keys of csrc/store_exchange.h."""
    times = store.add(f"memspan/process_group/times/{rank}", 1)
    rounds = itertools.count()

    def exchange(mine):
        here = f"memspan/process_group/{times}/{next(rounds)}"
        store.set(f"{here}/{rank}", mine)
        keys = [f"{here}/{member}" for member in range(size)]
        _wait_for(store, keys, rank, timeout)
        return b"".join(store.get(key) for key in keys)

    return exchange


def _done(future):
    return torch._C._distributed_c10d._create_work_from_future(future)


def _outputs_or_raise(future):
    outputs = future.wait()
    if isinstance(outputs, Exception):
        raise outputs
    return outputs


def _future_of(outputs):
    future = Future()
    future.set_result(outputs)
    return future


class _CollectiveWork(dist._Work):
    """One that the group's thread does; ``future`` gets its outputs or the exception."""

    def __init__(self, future):
        super().__init__()
        self._outcome = future
        # What a callback raises is a failure for the future's users in C++, too.
        self._future = future.then(_outputs_or_raise)

    def is_completed(self):
        return self._outcome.done()

    def wait(self, timeout=None):
        _outputs_or_raise(self._outcome)
        return True

    def result(self):
        return _outputs_or_raise(self._outcome)

    def get_future(self):
        return self._future


class _MessageWork(dist._Work):
    def __init__(self, group, request, tensor, result):
        super().__init__()
        self._group = group
        self._request = request
        self._tensor = tensor  # until it is over
        self._result = result
        self._code = _c.test(request)
        if self._code == _c.PENDING:
            group._watch(request)
        self._finish()

    def __del__(self):
        self._group._forget(self._request)

    def _finish(self):
        if self._code == _c.OK and self._result is not None:
            self._result.finish()
            self._result = None
        self._text = None if self._code in (_c.OK, _c.PENDING) else _core.last_error()

    def is_completed(self):
        if self._code == _c.PENDING:
            self._code = _c.test(self._request)
            self._finish()
        return self._code != _c.PENDING

    def is_success(self):
        return self.is_completed() and self._code == _c.OK

    def source_rank(self):
        return _c.sender(self._request)

    def _source_rank(self):
        return self.source_rank()

    def result(self):
        return [self._tensor]

    def wait(self, timeout=None):
        if not self.is_completed():
            limit = int(timeout.total_seconds() * 1000) if timeout else 0
            code = self._group._wait(self._request, max(limit, 0))
            if code == _c.TIMEOUT:
                _check(code)  # pending as before
            self._code = code
            self._finish()
        if self._text is not None:
            raise (ValueError if self._code == _c.INVALID_PARAM else dist.DistBackendError)(
                self._text
            )
        return True

    def get_future(self):
        self.wait()
        return _future_of(self.result())


def leave_all(patience):
    """Each group leaves when it has nothing left to do, after ``patience`` at the latest."""
    end = time.monotonic() + patience.total_seconds()
    for group in list(_live):
        while not group._queue.is_idle() and time.monotonic() < end:
            time.sleep(_LOOK_S)
        group.abort()


class PythonGroup(dist.ProcessGroup):
    """A member of the group that meets at the store. Collective."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._rank, self._size = rank, size
        self._name = self._description = "undefined"
        exchange = _exchange_by(store, rank, size, timeout)
        limit_ms = max(int(timeout.total_seconds() * 1000), 1)
        code, self._group = _c.create(rank, size, exchange, limit_ms)
        _check(code)
        self._queue = CollectiveQueue()
        self._lock = threading.Condition()
        self._watched = []
        self._waiters = 0
        self._helper = None
        self._is_closed = False
        _live.add(self)

    # ---- names, which the base class keeps in compiled backends only

    @property
    def group_name(self):
        return self._name

    def _set_group_name(self, name):
        self._name = name

    @property
    def group_desc(self):
        return self._description

    def _set_group_desc(self, description):
        self._description = description

    # ---- the group's threads

    def _collective(self, is_async, outputs, task):
        if self._is_closed:
            raise dist.DistBackendError("the process group has been shut down")
        with self._queue.turn() as is_first:
            if is_first:
                _check(_c.arrive(self._group))
                if not is_async or _c.wait_for_arrivals(self._group, _PATIENCE_US) == _c.OK:
                    task()
                    return _done(_future_of(outputs))

            def run():
                if not is_first:
                    _check(_c.arrive(self._group))
                task()

            return _done(self._queue.add(run, outputs, is_next=is_first))

    def _wait(self, request, limit_ms):
        with self._lock:
            self._waiters += 1
        code = _c.wait(request, limit_ms)
        with self._lock:
            self._waiters -= 1
            self._lock.notify_all()
        return code

    def _watch(self, request):
        with self._lock:
            self._watched.append(request)
            if self._helper is None:
                self._helper = threading.Thread(target=self._help, daemon=True)
                self._helper.start()
            self._lock.notify_all()

    def _forget(self, request):
        with self._lock:
            if request in self._watched:
                self._watched.remove(request)
        _c.free(request)

    def _help(self):
        while True:
            with self._lock:
                self._lock.wait_for(
                    lambda: self._is_closed or (self._watched and self._waiters == 0)
                )
                if self._is_closed:
                    return
                request = self._watched[0]
            code = _c.wait(request, _HELP_MS)
            with self._lock:
                if code != _c.TIMEOUT and request in self._watched:
                    self._watched.remove(request)

    def abort(self):
        """Ends what waits in the group, here and at the ranks that need this one."""
        if not self._is_closed:
            _c.leave(self._group)

    def shutdown(self):
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
            _live.discard(self)
            self._lock.notify_all()
        self._queue.stop()
        if self._helper is not None:
            self._helper.join()
        _c.destroy(self._group)

    # ---- what torch.distributed calls

    def getBackendName(self):
        return "memspan"

    def barrier(self, opts=None):
        group = self._group
        return self._collective(
            getattr(opts, "asyncOp", True), [], lambda: _check(_c.barrier(group))
        )

    def broadcast(self, tensors, opts):
        values = _Result(_only(tensors), has_values=True)
        root = opts.rootRank

        def task():
            flat = values.flat
            _check(_c.broadcast(self._group, flat.data_ptr(), flat.nbytes, root))
            values.finish()

        return self._collective(opts.asyncOp, list(tensors), task)

    def allreduce(self, tensors, opts=None):
        return self._reduce_all([_only(tensors)], opts)

    def allreduce_coalesced(self, tensors, opts=None):
        return self._reduce_all(tensors, opts)

    def _reduce_all(self, tensors, opts):
        opts = opts or dist.AllreduceOptions()
        calls = [(_Result(t, has_values=True), *_kind(t, opts.reduceOp)) for t in tensors]

        def task():
            for values, kind, operation in calls:
                place, count = values.flat.data_ptr(), values.flat.numel()
                _check(_c.all_reduce(self._group, place, place, count, kind, operation))
                values.finish()

        return self._collective(opts.asyncOp, list(tensors), task)

    def reduce(self, tensors, opts):
        values = _Result(_only(tensors), has_values=True)
        kind, operation = _kind(values.flat, opts.reduceOp)
        root = opts.rootRank

        def task():
            place, count = values.flat.data_ptr(), values.flat.numel()
            result = place if self._rank == root else 0
            _check(_c.reduce(self._group, result, place, count, kind, operation, root))
            if self._rank == root:
                values.finish()

        return self._collective(opts.asyncOp, list(tensors), task)

    def _list(self, lists):
        tensors = _only(lists)
        if len(tensors) != self._size:
            raise ValueError(f"expected {self._size} tensors, got {len(tensors)}")
        return tensors

    def _gather_lists(self, calls, outputs, is_async):
        """calls: pairs of a tensor and the results of all ranks."""
        pairs = []
        for values, results in calls:
            for result in results:
                _check_alike(result, values)
            pairs.append((_to_read(values), [_Result(result) for result in results]))

        def task():
            for values, results in pairs:
                places = _addresses([result.flat for result in results])
                _check(_c.all_gather(self._group, places, values.data_ptr(), values.nbytes))
                for result in results:
                    result.finish()

        return self._collective(is_async, outputs, task)

    def allgather(self, outputs, inputs, opts=None):
        results = self._list(outputs)
        is_async = getattr(opts, "asyncOp", True)
        return self._gather_lists([(_only(inputs), results)], results, is_async)

    def allgather_coalesced(self, outputs, inputs, opts=None):
        calls = [(tensor, [of[i] for of in outputs]) for i, tensor in enumerate(inputs)]
        flat = [tensor for of in outputs for tensor in of]
        return self._gather_lists(calls, flat, getattr(opts, "asyncOp", True))

    def _allgather_base(self, output, input, opts=None):
        return self.allgather_into_tensor_coalesced([output], [input], opts)

    def all_gather_single(self, output, input, opts=None):
        return self._allgather_base(output, input, opts)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        pairs = []
        for output, values in zip(outputs, inputs, strict=True):
            _check_alike(output, values, self._size)
            pairs.append((_to_read(values), _Result(output)))

        def task():
            for values, result in pairs:
                places = _addresses(result.flat, values.nbytes, self._size)
                _check(_c.all_gather(self._group, places, values.data_ptr(), values.nbytes))
                result.finish()

        return self._collective(getattr(opts, "asyncOp", True), list(outputs), task)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self.allgather_into_tensor_coalesced(outputs, inputs, opts)

    def gather(self, outputs, inputs, opts):
        values = _to_read(_only(inputs))
        is_root = self._rank == opts.rootRank
        root = opts.rootRank
        results = []
        if is_root:
            for output in self._list(outputs):
                _check_alike(output, values)
                results.append(_Result(output))

        def task():
            places = _addresses([result.flat for result in results])
            _check(_c.gather(self._group, places, values.data_ptr(), values.nbytes, root))
            for result in results:
                result.finish()

        return self._collective(opts.asyncOp, outputs[0] if is_root else [], task)

    def scatter(self, outputs, inputs, opts):
        result = _Result(_only(outputs))
        root = opts.rootRank
        values = []
        if self._rank == root:
            for tensor in self._list(inputs):
                _check_alike(tensor, result.flat)
                values.append(_to_read(tensor))

        def task():
            flat = result.flat
            _check(
                _c.scatter(self._group, flat.data_ptr(), _addresses(values), flat.nbytes, root)
            )
            result.finish()

        return self._collective(opts.asyncOp, list(outputs), task)

    def reduce_scatter(self, outputs, inputs, opts):
        result = _Result(_only(outputs))
        values = []
        for tensor in self._list(inputs):
            _check_alike(tensor, result.flat)
            values.append(_to_read(tensor))
        kind, operation = _kind(result.flat, opts.reduceOp)

        def task():
            place, count = result.flat.data_ptr(), result.flat.numel()
            parts = _addresses(values)
            _check(_c.reduce_scatter(self._group, place, parts, count, kind, operation))
            result.finish()

        return self._collective(opts.asyncOp, list(outputs), task)

    def _reduce_scatter_base(self, output, input, opts):
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_single(self, output, input, opts):
        return self._reduce_scatter_base(output, input, opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts):
        calls = []
        for output, values in zip(outputs, inputs, strict=True):
            _check_alike(values, output, self._size)
            calls.append((_to_read(values), _Result(output), *_kind(values, opts.reduceOp)))

        def task():
            for values, result, kind, operation in calls:
                place, count = result.flat.data_ptr(), result.flat.numel()
                parts = _addresses(values, result.flat.nbytes, self._size)
                _check(_c.reduce_scatter(self._group, place, parts, count, kind, operation))
                result.finish()

        return self._collective(opts.asyncOp, list(outputs), task)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        return self.reduce_scatter_tensor_coalesced(outputs, inputs, opts)

    def alltoall(self, outputs, inputs, opts):
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(
                f"expected {self._size} outputs and inputs, got {len(outputs)} and {len(inputs)}"
            )
        values = [_to_read(tensor) for tensor in inputs]
        results = [_Result(tensor) for tensor in outputs]

        def task():
            flats = [result.flat for result in results]
            _check(
                _c.all_to_all(
                    self._group,
                    _addresses(flats),
                    [flat.nbytes for flat in flats],
                    _addresses(values),
                    [value.nbytes for value in values],
                )
            )
            for result in results:
                result.finish()

        return self._collective(opts.asyncOp, list(outputs), task)

    def _parts(self, tensor, splits, what):
        """Addresses and bytes of the part for each rank."""
        rows = tensor.shape[0] if tensor.dim() else 1
        if not splits:
            if rows % self._size:
                raise ValueError(f"the {what} has {rows} rows, which are no multiple of {self._size}")
            splits = [rows // self._size] * self._size
        if len(splits) != self._size or min(splits) < 0 or sum(splits) != rows:
            raise ValueError(
                f"the splits of the {what} are {splits}: expected {self._size}, together {rows}"
            )
        row = tensor.nbytes // rows if rows else 0
        sizes = [split * row for split in splits]
        starts = [0, *itertools.accumulate(sizes)][:-1]
        return [tensor.data_ptr() + start for start in starts], sizes

    def alltoall_base(self, output, input, output_splits, input_splits, opts):
        values, result = _to_read(input), _Result(output)
        if values.dtype != result.flat.dtype:
            raise TypeError(f"the output is of {output.dtype}, the input of {input.dtype}")
        results, result_bytes = self._parts(result.flat, output_splits, "output")
        places, bytes_there = self._parts(values, input_splits, "input")

        def task():
            _check(_c.all_to_all(self._group, results, result_bytes, places, bytes_there))
            result.finish()
            values.numel()  # lives until here

        return self._collective(opts.asyncOp, [output], task)

    def all_to_all_single(self, output, input, output_splits, input_splits, opts):
        return self.alltoall_base(output, input, output_splits, input_splits, opts)

    def _post(self, sends, member, tag, tensor, flat, result):
        code, request = _c.post(sends, self._group, member, tag, flat.data_ptr(), flat.nbytes)
        _check(code)
        return _MessageWork(self, request, tensor if not sends else flat, result)

    def send(self, tensors, member, tag=0):
        flat = _to_read(_only(tensors))
        return self._post(True, member, tag, flat, flat, None)

    def recv(self, tensors, member, tag=0):
        result = _Result(_only(tensors))
        return self._post(False, member, tag, tensors[0], result.flat, result)

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, _c.ANYBODY, tag)
