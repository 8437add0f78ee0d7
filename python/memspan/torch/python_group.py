# SPDX-License-Identifier: Apache-2.0
"""The backend of process_group.py without a compiler: the same calls, some microseconds slower.

A collective that is waited for at once runs on the calling thread, and so does another when all ranks
come to it at about the same time; the others run on a thread of the group, in the order of the calls.
Profilers see what runs on the calling thread.
"""

import itertools
import time
import warnings
import weakref

import torch
import torch.distributed as dist
from memspan import _core
from memspan.torch.collective_queue import CollectiveQueue, CollectiveWork
from memspan.torch.python_messages import Messages, MessageWork, future_of, monitored_barrier
from memspan.torch.python_tensors import (
    Reduction,
    Result,
    ScatteredReduction,
    SparseSum,
    addresses,
    check,
    check_alike,
    check_type,
    gather_uneven,
    only,
    to_read,
)

_c = _core.group

_PATIENCE_US = 5000  # as in csrc/process_group.cc
_FIRST_PAUSE_S, _LONGEST_PAUSE_S, _SILENCE_S = 1e-4, 1e-2, 3  # as in csrc/store_exchange.h
_LOOK_S = 1e-3

_live = weakref.WeakSet()  # groups that nobody has shut down


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


def _profiled(title, task):
    if not torch.autograd._profiler_enabled():
        return task

    def run():
        with torch.profiler.record_function(f"memspan:{title}"):
            task()

    return run


def _milliseconds(limit):
    return max(int(limit.total_seconds() * 1000), 1)


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
        code, self._group = _c.create(rank, size, exchange, _milliseconds(timeout))
        check(code)
        self._queue = CollectiveQueue()
        self._messages = Messages()
        self._limit = timeout
        self._sequence = 0
        self._monitored_barriers = 0
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

    # ---- how collectives run

    def _collective(self, title, is_async, outputs, task):
        if self._is_closed:
            raise dist.DistBackendError("the process group has been shut down")
        self._sequence += 1
        task = _profiled(title, task)
        with self._queue.turn() as is_first:
            if is_first:
                check(_c.arrive(self._group))
                if not is_async:
                    task()
                    return _done(future_of(outputs))
                if _c.wait_for_arrivals(self._group, _PATIENCE_US) == _c.OK:
                    try:
                        task()
                    except Exception as error:  # whoever waits gets it
                        return CollectiveWork(future_of(error))
                    return _done(future_of(outputs))

            def run():
                if not is_first:
                    check(_c.arrive(self._group))
                task()

            return self._queue.add(run, outputs, is_next=is_first)

    def abort(self):
        """Ends what waits in the group, here and at the ranks that need this one."""
        if not self._is_closed:
            _c.leave(self._group)

    def shutdown(self):
        if self._is_closed:
            return
        self._is_closed = True
        _live.discard(self)
        self._queue.stop()
        self._messages.close()
        _c.destroy(self._group)

    # ---- what torch.distributed calls

    def getBackendName(self):
        return "memspan"

    def barrier(self, opts=None):
        group = self._group
        is_async = getattr(opts, "asyncOp", True)
        return self._collective("barrier", is_async, [], lambda: check(_c.barrier(group)))

    def monitored_barrier(self, timeout=None, wait_all_ranks=False):
        number = self._monitored_barriers
        self._monitored_barriers += 1
        limit = self._limit if timeout is None else timeout
        monitored_barrier(self._group, self._rank, self._size, number, limit, wait_all_ranks)

    def set_timeout(self, timeout):
        check(_c.set_timeout(self._group, _milliseconds(timeout)))
        self._limit = timeout

    _set_default_timeout = set_timeout

    def _set_sequence_number_for_group(self):
        pass

    def _get_sequence_number_for_group(self):
        return self._sequence

    def broadcast(self, tensors, opts):
        values = Result(only(tensors), has_values=True)
        root = opts.rootRank

        def task():
            flat = values.flat
            check(_c.broadcast(self._group, flat.data_ptr(), flat.nbytes, root))
            values.finish()

        return self._collective("broadcast", opts.asyncOp, list(tensors), task)

    def allreduce(self, tensors, opts=None):
        if len(tensors) == 1 and tensors[0].layout == torch.sparse_coo:
            return self.allreduce_sparse(tensors, opts)
        return self._reduce_all([only(tensors)], opts)

    def allreduce_sparse(self, tensors, opts=None):
        opts = opts or dist.AllreduceOptions()
        total = SparseSum(only(tensors), opts.reduceOp, self._size)
        return self._collective(
            "sparse_all_reduce", opts.asyncOp, list(tensors), lambda: total.run(self._group)
        )

    def allreduce_coalesced(self, tensors, opts=None):
        return self._reduce_all(tensors, opts)

    def _reduce_all(self, tensors, opts):
        opts = opts or dist.AllreduceOptions()
        reductions = [Reduction(tensor, opts.reduceOp) for tensor in tensors]

        def task():
            for each in reductions:
                result, values = each.result.flat.data_ptr(), each.values.data_ptr()
                check(_c.all_reduce(self._group, result, values, each.values.numel(), *each.kind))
                each.result.finish()

        return self._collective("all_reduce", opts.asyncOp, list(tensors), task)

    def reduce(self, tensors, opts):
        reduction = Reduction(only(tensors), opts.reduceOp)
        root = opts.rootRank

        def task():
            values = reduction.values
            result = reduction.result.flat.data_ptr() if self._rank == root else 0
            call = (self._group, result, values.data_ptr(), values.numel())
            check(_c.reduce(*call, *reduction.kind, root))
            if self._rank == root:
                reduction.result.finish()

        return self._collective("reduce", opts.asyncOp, list(tensors), task)

    def _list(self, lists):
        tensors = only(lists)
        if len(tensors) != self._size:
            raise ValueError(f"expected {self._size} tensors, got {len(tensors)}")
        return tensors

    def _gather_lists(self, calls, outputs, is_async):
        """calls: pairs of a tensor and the results of all ranks, whose sizes may differ."""
        pairs = []
        for values, results in calls:
            check_alike(results[self._rank], values)
            for result in results:
                check_type(result, values)
            pairs.append((to_read(values), [Result(result) for result in results]))

        def task():
            for values, results in pairs:
                flats = [result.flat for result in results]
                if len({flat.numel() for flat in flats}) == 1:
                    places = addresses(flats)
                    check(_c.all_gather(self._group, places, values.data_ptr(), values.nbytes))
                else:
                    gather_uneven(self._group, flats, values)
                for result in results:
                    result.finish()

        return self._collective("all_gather", is_async, outputs, task)

    def allgather(self, outputs, inputs, opts=None):
        results = self._list(outputs)
        is_async = getattr(opts, "asyncOp", True)
        return self._gather_lists([(only(inputs), results)], results, is_async)

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
            check_alike(output, values, self._size)
            pairs.append((to_read(values), Result(output)))

        def task():
            for values, result in pairs:
                places = addresses(result.flat, values.nbytes, self._size)
                check(_c.all_gather(self._group, places, values.data_ptr(), values.nbytes))
                result.finish()

        is_async = getattr(opts, "asyncOp", True)
        return self._collective("all_gather_into_tensor", is_async, list(outputs), task)

    def all_gather_single_coalesced(self, outputs, inputs, opts=None):
        return self.allgather_into_tensor_coalesced(outputs, inputs, opts)

    def gather(self, outputs, inputs, opts):
        values = to_read(only(inputs))
        is_root = self._rank == opts.rootRank
        root = opts.rootRank
        results = []
        if is_root:
            for output in self._list(outputs):
                check_alike(output, values)
                results.append(Result(output))

        def task():
            places = addresses([result.flat for result in results])
            check(_c.gather(self._group, places, values.data_ptr(), values.nbytes, root))
            for result in results:
                result.finish()

        return self._collective("gather", opts.asyncOp, outputs[0] if is_root else [], task)

    def scatter(self, outputs, inputs, opts):
        result = Result(only(outputs))
        root = opts.rootRank
        values = []
        if self._rank == root:
            for tensor in self._list(inputs):
                check_alike(tensor, result.flat)
                values.append(to_read(tensor))

        def task():
            flat = result.flat
            check(
                _c.scatter(self._group, flat.data_ptr(), addresses(values), flat.nbytes, root)
            )
            result.finish()

        return self._collective("scatter", opts.asyncOp, list(outputs), task)

    def reduce_scatter(self, outputs, inputs, opts):
        output, parts = only(outputs), self._list(inputs)
        check_alike(parts[self._rank], output)
        for part in parts:
            check_type(part, output)
        reductions = [ScatteredReduction(output, parts, opts.reduceOp)]
        return self._reduce_scatter_all("reduce_scatter", reductions, outputs, opts)

    def _reduce_scatter_all(self, title, reductions, outputs, opts):
        def task():
            for each in reductions:
                each.run(self._group, self._rank)

        return self._collective(title, opts.asyncOp, list(outputs), task)

    def _reduce_scatter_base(self, output, input, opts):
        return self.reduce_scatter_tensor_coalesced([output], [input], opts)

    def reduce_scatter_single(self, output, input, opts):
        return self._reduce_scatter_base(output, input, opts)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts):
        reductions = []
        for output, values in zip(outputs, inputs, strict=True):
            check_alike(values, output, self._size)
            parts = to_read(values).view(-1).tensor_split(self._size)
            reductions.append(ScatteredReduction(output, parts, opts.reduceOp))
        return self._reduce_scatter_all("reduce_scatter_tensor", reductions, outputs, opts)

    def reduce_scatter_single_coalesced(self, outputs, inputs, opts):
        return self.reduce_scatter_tensor_coalesced(outputs, inputs, opts)

    def alltoall(self, outputs, inputs, opts):
        if len(outputs) != self._size or len(inputs) != self._size:
            raise ValueError(
                f"expected {self._size} outputs and inputs, got {len(outputs)} and {len(inputs)}"
            )
        values = [to_read(tensor) for tensor in inputs]
        results = [Result(tensor) for tensor in outputs]

        def task():
            flats = [result.flat for result in results]
            check(
                _c.all_to_all(
                    self._group,
                    addresses(flats),
                    [flat.nbytes for flat in flats],
                    addresses(values),
                    [value.nbytes for value in values],
                )
            )
            for result in results:
                result.finish()

        return self._collective("all_to_all", opts.asyncOp, list(outputs), task)

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
        values, result = to_read(input), Result(output)
        if values.dtype != result.flat.dtype:
            raise TypeError(f"the output is of {output.dtype}, the input of {input.dtype}")
        results, result_bytes = self._parts(result.flat, output_splits, "output")
        places, bytes_there = self._parts(values, input_splits, "input")

        def task():
            check(_c.all_to_all(self._group, results, result_bytes, places, bytes_there))
            result.finish()
            values.numel()  # lives until here

        return self._collective("all_to_all", opts.asyncOp, [output], task)

    def all_to_all_single(self, output, input, output_splits, input_splits, opts):
        return self.alltoall_base(output, input, output_splits, input_splits, opts)

    def _post(self, sends, member, tag, tensor, flat, result):
        code, request = _c.post(sends, self._group, member, tag, flat.data_ptr(), flat.nbytes)
        check(code)
        return MessageWork(self._messages, request, tensor if not sends else flat, result)

    def send(self, tensors, member, tag=0):
        flat = to_read(only(tensors))
        return self._post(True, member, tag, flat, flat, None)

    def recv(self, tensors, member, tag=0):
        result = Result(only(tensors))
        return self._post(False, member, tag, tensors[0], result.flat, result)

    def recv_anysource(self, tensors, tag=0):
        return self.recv(tensors, _c.ANYBODY, tag)
