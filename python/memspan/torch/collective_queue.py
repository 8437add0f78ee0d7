# SPDX-License-Identifier: Apache-2.0
"""Runs a group's collectives one at a time, in the order of the calls: csrc/collective_queue.h in
Python, where the turn and the threads are explained."""

import collections
import contextlib
import threading

import torch.distributed as dist
from torch.futures import Future


def _outputs_or_raise(future):
    outcome = future.wait()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class CollectiveWork(dist._Work):
    """One that a thread of the group does. ``outcome`` is the future of its outputs or its exception,
    as a value: users in C++ do not see an exception of a future of Python."""

    def __init__(self, outcome):
        super().__init__()
        self._outcome = outcome
        # What a callback raises is a failure for users in C++, too.
        self._future = outcome.then(_outputs_or_raise)

    def is_completed(self):
        return self._outcome.done()

    def is_success(self):
        return self.is_completed() and not isinstance(self._outcome.value(), Exception)

    def wait(self, timeout=None):
        _outputs_or_raise(self._outcome)
        return True

    def result(self):
        return _outputs_or_raise(self._outcome)

    def get_future(self):
        return self._future


class CollectiveQueue:
    def __init__(self):
        self._changed = threading.Condition()
        self._tasks = collections.deque()
        self._has_turn = False  # somebody runs a collective
        self._waiting = 0  # threads that wait for a task, or have been called to one
        self._is_stopping = False
        self._threads = []

    @contextlib.contextmanager
    def turn(self):
        """Whether the caller may run a collective inside of the block; else it is to be added."""
        with self._changed:
            is_mine = not self._has_turn and not self._tasks
            self._has_turn = self._has_turn or is_mine
        try:
            yield is_mine
        finally:
            if is_mine:
                self._give_up()

    def add(self, run, outputs, is_next):
        """Its work. is_next: of a caller in his turn, in front of all others."""
        future = Future()
        work = CollectiveWork(future)  # ahead of callbacks of its future
        with self._changed:
            (self._tasks.appendleft if is_next else self._tasks.append)((run, outputs, future))
            self._call_thread()
        return work

    def is_idle(self):
        """Nobody runs a collective, and none is left to run."""
        with self._changed:
            return not self._has_turn and not self._tasks

    def stop(self):
        """After everything that was added. Not from a callback, whose thread is waited for."""
        with self._changed:
            self._is_stopping = True
            self._changed.notify_all()
        while self._threads:
            self._threads.pop().join()  # its callbacks may start another

    def _give_up(self):
        with self._changed:
            self._has_turn = False
            self._call_thread()

    def _call_thread(self):
        if self._has_turn or not self._tasks:
            return
        if self._waiting:
            self._changed.notify()
        else:
            thread = threading.Thread(target=self._work, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self):
        with self._changed:
            self._waiting += 1
            self._changed.wait_for(
                lambda: (self._tasks and not self._has_turn) or (self._is_stopping and not self._tasks)
            )
            self._waiting -= 1
            if not self._tasks:
                return None
            self._has_turn = True
            return self._tasks.popleft()

    def _work(self):
        while (task := self._next()) is not None:
            run, outputs, future = task
            try:
                run()
            except Exception as error:  # whoever waits gets it
                outputs = error
            del task, run
            self._give_up()
            future.set_result(outputs)
            del outputs, future
