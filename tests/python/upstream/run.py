#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of PyTorch's own torch.testing._internal.distributed.distributed_test over the
backend "memspan", and compares each outcome with expected.txt.

    run.py [--long] [--ranks N[,N...]] [--backends B[,B]] [--jobs N] [--write] [TEST...]

Without --long: 2 ranks, and only the tests that expected.txt does not list as skipped there. With it:
2, 3 and 4 ranks, every test, and gloo beside memspan. --write writes expected.txt anew, keeping the
reasons that stand there. The end status is 0 when no outcome is worse than expected.

A test is written for gloo: what PyTorch skips for gloo on this machine is skipped here. Only the
backend's name differs, and a group that a test asks of gloo comes from memspan.

One process imports PyTorch for each number of ranks, and forks the ranks of every test.
"""

import argparse
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.abspath(__file__))
EXPECTED = os.path.join(FOLDER, "expected.txt")
SIZES = (2, 3, 4)
LIMIT_S = 60  # of a test; twice of gloo's own
OUTCOMES = ("pass", "skip", "fail")
HEADER = """\
# What tests/python/upstream/run.py expects: the outcome with 2, 3 and 4 ranks, the test, the reason.
# skip: as with gloo on a machine without a GPU. Written by `run.py --long --write`; reasons by hand.
"""


# ---- what is expected


def read_expected():
    """{test: ({ranks: outcome}, reason)}"""
    expected = {}
    if not os.path.exists(EXPECTED):
        return expected
    with open(EXPECTED, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            *outcomes, rest = line.rstrip("\n").split(None, len(SIZES))
            name, _, reason = rest.partition(" ")
            if any(outcome not in OUTCOMES for outcome in outcomes):
                raise SystemExit(f"{EXPECTED}: {line!r}: outcomes are {', '.join(OUTCOMES)}")
            if "fail" in outcomes and not reason:
                raise SystemExit(f"{EXPECTED}: {line!r}: a failure that is expected has a reason")
            expected[name] = (dict(zip(SIZES, outcomes)), reason.strip())
    return expected


def write_expected(expected):
    with open(EXPECTED, "w", encoding="utf-8") as file:
        file.write(HEADER)
        for name in sorted(expected):
            outcomes, reason = expected[name]
            columns = " ".join(outcomes.get(size, "skip") for size in SIZES)
            file.write(f"{columns}  {name}  {reason}".rstrip() + "\n")


# ---- one number of ranks, in a process of its own


def load_tests():
    """PyTorch's module of tests, and their class."""
    import memspan_autoload
    from memspan.torch import process_group
    from torch.testing._internal.distributed import distributed_test

    memspan_autoload.register()
    process_group.is_compiled()  # compiled and loaded once, ahead of the forks

    class Upstream(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        pass

    return distributed_test, Upstream


class Backend(str):
    """A name that tests find equal to gloo's, too, where they ask what to do on the CPU."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other) or other == "gloo"

    def __ne__(self, other):
        return not self == other


def use_memspan(module):
    """The module was imported as for gloo, which decides what is skipped."""
    import torch.distributed as dist
    from torch.distributed import distributed_c10d

    module.BACKEND = Backend("memspan")
    module.PROFILING_SUPPORTED_BACKENDS.append("memspan")
    module.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append("memspan")

    def instead(function):
        def call(*args, **options):
            args = ["memspan" if arg == "gloo" else arg for arg in args]
            options = {key: "memspan" if value == "gloo" else value for key, value in options.items()}
            return function(*args, **options)

        return call

    for name in ("init_process_group", "new_group"):
        function = instead(getattr(dist, name))
        setattr(dist, name, function)
        setattr(distributed_c10d, name, function)
    # PyTorch's monitored_barrier lets gloo through only.
    get_backend = distributed_c10d.get_backend
    distributed_c10d.get_backend = lambda group=None: Backend(get_backend(group))


class Test:
    """One that runs: its ranks are children of this process."""

    def __init__(self, loaded, name, backend, ranks):
        self.name, self.backend = name, backend
        self._folder = tempfile.TemporaryDirectory(prefix="upstream-")
        self._pids, self._codes, self._pipes = {}, {}, []
        self._begin = time.monotonic()
        for folder in ("barrier", "test_dir", "init_dir"):
            os.mkdir(os.path.join(self._folder.name, folder))
        for rank in range(ranks):
            ours, theirs = multiprocessing.Pipe()
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                self._run(loaded, rank, theirs)
            theirs.close()
            self._pipes.append(ours)
            self._pids[os.pidfd_open(pid)] = (rank, pid)

    def _run(self, loaded, rank, pipe):
        code = 1
        try:
            module, tests = loaded
            output = os.open(self._output(rank), os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            os.environ["TEMP_DIR"] = self._folder.name
            module.INIT_METHOD = f"file://{self._folder.name}/init_dir/shared_init_file"
            if self.backend == "memspan":
                use_memspan(module)
            tests._run(rank, self.name, f"{self._folder.name}/rendezvous", pipe)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _output(self, rank):
        return os.path.join(self._folder.name, f"rank{rank}")

    def descriptors(self):
        return list(self._pids)

    def reap(self, descriptor):
        rank, pid = self._pids.pop(descriptor)
        os.close(descriptor)
        _, status = os.waitpid(pid, 0)
        self._codes[rank] = os.waitstatus_to_exitcode(status)
        failed = self._codes[rank] not in (0, *SKIPS)
        if failed:  # the others would wait for it
            self._kill(signal.SIGTERM)

    def check_time(self):
        if time.monotonic() - self._begin > LIMIT_S:
            self._kill(signal.SIGKILL)

    def _kill(self, number):
        for _, pid in self._pids.values():
            os.kill(pid, number)  # not reaped yet, so it is there

    def end(self):
        """(outcome, seconds, what is said of it)"""
        seconds = time.monotonic() - self._begin
        codes = set(self._codes.values())
        for pipe in self._pipes:
            pipe.close()
        said = "".join(self._said(rank, code) for rank, code in sorted(self._codes.items()))
        self._folder.cleanup()
        if codes <= {0, *SKIPS}:
            return ("pass" if codes == {0} else "skip"), seconds, ""
        return "fail", seconds, said

    def _said(self, rank, code):
        if code in (0, -signal.SIGTERM):
            return ""
        with open(self._output(rank), encoding="utf-8", errors="replace") as file:
            text = re.sub(r"^\[rank\d+\]:\w+ [^\]]*\] ?", "", file.read(), flags=re.MULTILINE)
        return f"---- rank {rank} of {self.name} ended with {code}:\n{text[-6000:]}\n"


SKIPS = {}  # end status: reason


def serve(ranks, backends, names, jobs):
    """Runs the tests, so many at a time, and prints a line for each."""
    loaded = load_tests()
    from torch.testing._internal.common_distributed import TEST_SKIPS

    SKIPS.update({skip.exit_code: skip.message for skip in TEST_SKIPS.values()})
    module, tests = loaded
    queue = [(name, backend) for name in names or test_names(tests) for backend in backends]
    running = []
    while queue or running:
        while queue and len(running) < jobs:
            name, backend = queue.pop(0)
            if getattr(getattr(tests, name), "__unittest_skip__", False):
                report(ranks, backend, name, "skip", 0, "")
            else:
                running.append(Test(loaded, name, backend, ranks))
        ready = multiprocessing.connection.wait([d for t in running for d in t.descriptors()], 1)
        for test in list(running):
            for descriptor in set(test.descriptors()) & set(ready):
                test.reap(descriptor)
            test.check_time()
            if not test.descriptors():
                running.remove(test)
                report(ranks, test.backend, test.name, *test.end())


def test_names(tests):
    return sorted(name for name in dir(tests) if name.startswith("test_"))


def report(ranks, backend, name, outcome, seconds, said):
    sys.stdout.write(said)
    print(f"@ {ranks} {backend} {name} {outcome} {seconds:.1f}", flush=True)


# ---- all numbers of ranks


def run_size(ranks, backends, names, jobs, expected, outcomes):
    """Adds to {(ranks, backend, test): outcome}. Shows what a test said unless it fails as expected."""
    environment = {
        **os.environ,
        "BACKEND": "gloo",
        "INIT_METHOD": "file://",
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    command = [sys.executable, __file__, "--serve", str(ranks), "--backends", ",".join(backends)]
    command += ["--jobs", str(jobs), *names]
    said = []
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if not line.startswith("@ "):
                said.append(line)
                continue
            _, size, backend, name, outcome, seconds = line.split()
            outcomes[int(size), backend, name] = outcome
            wanted = expected.get(name, ({}, ""))[0].get(int(size))
            as_expected = outcome == "fail" == wanted and backend == "memspan"
            if not as_expected:
                sys.stdout.writelines(said)
            said.clear()
            if outcome != "skip":
                word = "fails as expected:" if as_expected else outcome
                print(f"{word} {backend} {size} ranks {name} ({seconds} s)", flush=True)
    sys.stdout.writelines(said)
    if process.returncode != 0:
        raise SystemExit(f"upstream: the tests with {ranks} ranks ended with {process.returncode}")


def compare(outcomes, expected):
    """How many outcomes are worse than expected, or of tests that are not in the list."""
    worse = 0
    for (ranks, backend, name), outcome in sorted(outcomes.items()):
        if backend != "memspan":
            continue
        wanted = expected.get(name, ({}, ""))[0].get(ranks)
        if outcome == wanted:
            continue
        if outcome == "fail" or (wanted == "pass" and outcome == "skip") or wanted is None:
            worse += 1
            print(f"upstream: {name} with {ranks} ranks: {outcome}, expected was {wanted}")
        else:
            print(f"upstream: {name} with {ranks} ranks: {outcome}, no longer {wanted}: --write notes it")
    return worse


def merge(outcomes, expected):
    for (ranks, backend, name), outcome in outcomes.items():
        if backend == "memspan":
            of_sizes, reason = expected.setdefault(name, ({}, ""))
            of_sizes[ranks] = outcome
            if "fail" not in of_sizes.values():
                reason = ""
            expected[name] = (of_sizes, reason)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0], epilog="See the head of this file."
    )
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--ranks")
    parser.add_argument("--backends")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    parser.add_argument("tests", nargs="*", metavar="TEST")
    options = parser.parse_args()
    backends = (options.backends or ("memspan,gloo" if options.long else "memspan")).split(",")
    if options.serve:
        serve(options.serve, backends, options.tests, options.jobs)
        return 0
    sizes = SIZES if options.long else SIZES[:1]
    if options.ranks:
        sizes = [int(ranks) for ranks in options.ranks.split(",")]
    expected = read_expected()
    outcomes = {}
    begin = time.monotonic()
    for ranks in sizes:
        names = options.tests
        if not names and not options.long:
            names = [name for name, (of, _) in expected.items() if of.get(ranks) != "skip"]
        run_size(ranks, backends, names, options.jobs, expected, outcomes)
    for ranks in sizes:
        for backend in backends:
            counts = [
                sum(o == outcome for (r, b, _), o in outcomes.items() if (r, b) == (ranks, backend))
                for outcome in OUTCOMES
            ]
            print(f"{backend}, {ranks} ranks: %d pass, %d skip, %d fail" % tuple(counts))
    print(f"after {time.monotonic() - begin:.0f} s")
    if options.write:
        merge(outcomes, expected)
        write_expected(expected)
        return 0
    return 1 if compare(outcomes, expected) else 0


if __name__ == "__main__":
    sys.exit(main())
