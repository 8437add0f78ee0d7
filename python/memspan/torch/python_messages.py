# SPDX-License-Identifier: Apache-2.0
"""The works of messages, which move while somebody waits for one; a thread waits for those that
nobody waits for. And monitored_barrier, which is made of messages: csrc/monitored_barrier.h."""

import threading
import time

import torch.distributed as dist
from memspan import _core
from memspan.torch.python_tensors import check
from torch.futures import Future

_c = _core.group
_HELP_MS = 20
_FIRST_BARRIER_TAG = 1 << 40  # beyond all tags of PyTorch's, which are ints


def future_of(outputs):
    future = Future()
    future.set_result(outputs)
    return future


class Messages:
    """Of one group."""

    def __init__(self):
        self._changed = threading.Condition()
        self._watched = []
        self._waiters = 0
        self._helper = None
        self._is_closed = False

    def wait(self, request, limit_ms):
        with self._changed:
            self._waiters += 1
        code = _c.wait(request, limit_ms)
        with self._changed:
            self._waiters -= 1
            self._changed.notify_all()
        return code

    def watch(self, request):
        with self._changed:
            self._watched.append(request)
            if self._helper is None:
                self._helper = threading.Thread(target=self._help, daemon=True)
                self._helper.start()
            self._changed.notify_all()

    def forget(self, request):
        with self._changed:
            if request in self._watched:
                self._watched.remove(request)
        _c.free(request)

    def close(self):
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._helper is not None:
            self._helper.join()

    def _help(self):
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._is_closed or (self._watched and self._waiters == 0)
                )
                if self._is_closed:
                    return
                request = self._watched[0]
            code = _c.wait(request, _HELP_MS)
            with self._changed:
                if code != _c.TIMEOUT and request in self._watched:
                    self._watched.remove(request)


class MessageWork(dist._Work):
    def __init__(self, messages, request, tensor, result):
        super().__init__()
        self._messages = messages
        self._request = request
        self._tensor = tensor  # until it is over
        self._result = result
        self._code = _c.test(request)
        if self._code == _c.PENDING:
            messages.watch(request)
        self._finish()

    def __del__(self):
        self._messages.forget(self._request)

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
            code = self._messages.wait(self._request, max(limit, 0))
            if code == _c.TIMEOUT:
                check(code)  # pending as before
            self._code = code
            self._finish()
        if self._text is not None:
            raise (ValueError if self._code == _c.INVALID_PARAM else dist.DistBackendError)(
                self._text
            )
        return True

    def get_future(self):
        self.wait()
        return future_of(self.result())


def monitored_barrier(group, rank, size, number, limit, waits_for_all):
    """number: of the group's; limit: of all of it, a timedelta."""
    tag = _FIRST_BARRIER_TAG + number
    end = time.monotonic() + limit.total_seconds()
    in_limit = f"{limit.total_seconds() * 1000:.0f} ms"
    requests = []

    def post(sends, member):
        code, request = _c.post(sends, group, member, tag, 0, 0)
        check(code)
        requests.append(request)
        return request

    def wait(request):
        return _c.wait(request, max(int((end - time.monotonic()) * 1000), 1))

    try:
        if rank != 0:
            arrival, answer = post(True, 0), post(False, 0)
            if (wait(arrival) or wait(answer)) != _c.OK:
                raise dist.DistBackendError(
                    f"Rank {rank} successfully reached monitoredBarrier, but received errors while "
                    f"waiting for send/recv from rank 0: {_core.last_error()}"
                )
            return
        missing = []
        for member, arrival in enumerate([post(False, member) for member in range(1, size)], 1):
            if not waits_for_all and time.monotonic() >= end:
                raise dist.DistBackendError(
                    f"Rank 0 timed out in monitoredBarrier after {in_limit}: {member - 1} of the "
                    f"others had come"
                )
            if wait(arrival) != _c.OK:
                missing.append(str(member))
                if not waits_for_all:
                    break
        if missing:
            who = f"Rank{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
            raise dist.DistBackendError(
                f"{who} failed to pass monitoredBarrier in {in_limit}: {_core.last_error()}"
            )
        for answer in [post(True, member) for member in range(1, size)]:
            check(_c.wait(answer, 0))
    finally:
        for request in requests:
            _c.free(request)
