# SPDX-License-Identifier: Apache-2.0
"""What a row of the table of promises is, and the sheet that one run of it fills."""

import contextlib
import json
import math
import os
import random
import threading
import time
import uuid
from dataclasses import dataclass, field

import jobs

MOST_SHOWN = 5  # failures that are printed for a row


@dataclass
class Plan:
    """How often, for how long, and with which programs."""

    rounds: int
    soak_s: float
    seed: int
    build: str

    def program(self, name):
        return os.path.join(self.build, "tests", name)

    def tool(self, name):
        return os.path.join(self.build, "bin", name)


@dataclass
class Row:
    number: str
    title: str
    bound_ms: float  # a longer sample is a failure; 0: nothing is timed
    run: object  # called with a Sheet
    promise_ms: float = 0  # what all but one time in fifty stay within; 0: only the bound


class Standstills:
    """How long this machine stood still: a virtual one is stopped for seconds now and then, with
    everything on it and all its clocks going on. A thread that only sleeps is then late by as much;
    nothing that the tests start makes it late by a quarter of a second."""

    TICK_S = 0.01
    LEAST_S = 0.25

    def __init__(self):
        self.total_s = 0.0
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            since = time.monotonic()
            time.sleep(self.TICK_S)
            late = time.monotonic() - since - self.TICK_S
            if late > self.LEAST_S:
                self.total_s += late


STANDSTILLS = Standstills()


class Skip(Exception):
    """What the row needs is not there."""


@dataclass
class Sheet:
    row: Row
    plan: Plan
    n: int = 0
    samples_ms: list = field(default_factory=list)
    failures: list = field(default_factory=list)
    skipped: str = None
    notes: list = field(default_factory=list)
    stood_s: float = 0  # Standstills.total_s when the round began

    def __post_init__(self):
        # A row draws the same numbers alone as among others.
        self.random = random.Random(f"{self.plan.seed}/{self.row.number}")
        # In the environment of every process that the row starts.
        self.mark = f"MEMSPAN_ROW_MARK={uuid.UUID(int=random.getrandbits(128))}"

    @contextlib.contextmanager
    def round(self, what):
        """One trial: an assertion that fails in it is one failure, and the row goes on."""
        self.n += 1
        self.stood_s = STANDSTILLS.total_s
        try:
            yield
        except AssertionError as error:
            self.fail(f"{what}: {error}")
        finally:
            left = jobs.end_all(self.mark)
            if left:
                self.fail(f"{what}: {len(left)} processes were left: {left}")

    def fail(self, text):
        self.failures.append(text)
        if len(self.failures) <= MOST_SHOWN:
            print(f"    row {self.row.number}, {text}", flush=True)

    def took(self, seconds):
        if seconds > Standstills.LEAST_S:
            time.sleep(5 * Standstills.TICK_S)  # until it would have been noticed
            stood = min(seconds, STANDSTILLS.total_s - self.stood_s)
            if stood > 0:
                print(f"    row {self.row.number}: the machine stood still for {stood:.2f} s", flush=True)
            seconds -= stood
        self.samples_ms.append(1e3 * seconds)
        check(
            1e3 * seconds <= self.row.bound_ms,
            f"took {1e3 * seconds:.1f} ms, allowed are {self.row.bound_ms:g}",
        )

    def check_promise(self):
        """A shared machine stops now and then for longer than a promise, but not often; a few times
        beside other tests say nothing."""
        late = [ms for ms in self.samples_ms if ms > self.row.promise_ms]
        taken = len(self.samples_ms)
        if self.row.promise_ms and taken >= 50 and len(late) > taken / 50:
            self.fail(
                f"{len(late)} of {taken} took longer than {self.row.promise_ms:g} ms, "
                f"up to {max(late):.1f}"
            )

    def note(self, text):
        self.notes.append(text)

    def pick(self, choices, rounds=None):
        """As many choices as there are rounds, each as often as another, in a random order."""
        rounds = rounds or self.plan.rounds
        picked = []
        while len(picked) < rounds:
            again = list(choices)
            self.random.shuffle(again)
            picked += again
        return picked[:rounds]

    def result(self):
        def at(share):
            ordered = sorted(self.samples_ms)
            if not ordered:
                return None
            return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], 3)

        return {
            "row": self.row.number,
            "title": self.row.title,
            "n": self.n,
            "p50_ms": at(0.5),
            "p99_ms": at(0.99),
            "max_ms": at(1.0),
            "failures": len(self.failures),
            "promise_ms": self.row.promise_ms,
            "bound_ms": self.row.bound_ms,
            "seed": self.plan.seed,
            "skipped": self.skipped,
        }


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def check_in(part, whole):
    check(part in whole, f'"{part}" is not in {json.dumps(whole[-1500:])}')


def random_moment(sheet, ends, most_s):
    """Lets up to `most_s` pass; what the row kills it kills at a moment that nothing else chose."""
    ends.wait(sheet.random.random() * most_s)


def run(row, plan):
    sheet = Sheet(row, plan)
    os.environ["MEMSPAN_ROW_MARK"] = sheet.mark.split("=", 1)[1]
    began = time.monotonic()
    try:
        row.run(sheet)
        sheet.check_promise()
    except Skip as reason:
        sheet.skipped = str(reason)
    except Exception as error:  # a row that breaks is a row that fails; the others are still run
        sheet.fail(f"the row itself broke: {error!r}")
    finally:
        jobs.end_all(sheet.mark)
    return sheet, time.monotonic() - began
