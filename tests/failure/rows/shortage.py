# SPDX-License-Identifier: Apache-2.0
"""Row 14: little memory, a small or full /dev/shm, file size limits: an error with numbers, or it
works; never SIGBUS."""

import os
import signal
import time

import jobs
from needs import lacks
from rows.sheet import Row, Skip, check

BOUND_MS = 1000
RANKS = 2
SIGNALS_NEVER = {128 + signal.SIGBUS, 128 + signal.SIGSEGV, -signal.SIGBUS, -signal.SIGSEGV}


class Missing(Exception):
    """A case that this machine cannot make."""


def command(sheet, *arguments):
    # Puts, sums and allocations of everything that the program knows, a few times.
    program = sheet.plan.program("failure_blocked")
    return [jobs.OSHRUN, "-n", str(RANKS), "--timeout", "20", program, *arguments]


def working(sheet):
    return command(sheet, "mixed", "all", "3")


def run(shell, words, **environment):
    """The outcome of `shell`, whose "$@" is `words`, in a mount namespace of its own if the machine has them."""
    prefix = [] if lacks("mounts") else ["unshare", "-m"]
    return jobs.finish(jobs.start([*prefix, "bash", "-c", shell, "bash", *words], **environment))


def must_work(outcome):
    code, out, errors = outcome
    check(code == 0 and out.count("done") == RANKS, f"code {code}: {out + errors!r}")


def must_say(outcome, *words):
    code, _, errors = outcome
    check(code not in SIGNALS_NEVER, f"ended by a signal, code {code}: {errors!r}")
    check(code != 0, "code 0")
    for word in words:
        check(word in errors, f"no {word!r} in {errors!r}")


def need_mounts():
    if lacks("mounts"):
        raise Missing("needs=mounts")


def small_dev_shm(sheet):
    need_mounts()
    must_work(run('mount -t tmpfs -o size=1m none /dev/shm && exec "$@"', working(sheet)))


def full_dev_shm(sheet):
    need_mounts()
    fill = "mount -t tmpfs -o size=1m none /dev/shm && dd if=/dev/zero of=/dev/shm/full bs=64k"
    must_work(run(f'{{ {fill}; }} 2>/dev/null; exec "$@"', working(sheet)))


def no_dev_shm(sheet):
    need_mounts()
    must_work(run('mount -t tmpfs -o ro,size=4k none /dev/shm && exec "$@"', working(sheet)))


def file_size_limit(sheet):
    must_say(run('ulimit -f 1024 && exec "$@"', working(sheet)), "RLIMIT_FSIZE")


def file_size_limit_by_hand(sheet):
    port = jobs.free_port()
    limited = ["bash", "-c", 'ulimit -f 1024 && exec "$@"', "bash"]
    program = sheet.plan.program("failure_victim")
    processes = jobs.by_hand_at(port, RANKS, [*limited, program, "hello"], MEMSPAN_INIT_TIMEOUT="5")
    outcomes = [jobs.finish(process) for process in processes]
    must_say(outcomes[0], "RLIMIT_FSIZE")
    must_say(outcomes[1])


def address_space_limit(sheet):
    # The launcher needs little; the processes reserve all heaps.
    limited = [*command(sheet)[:5], "bash", "-c", 'ulimit -v 500000 && exec "$@"', "bash"]
    program = sheet.plan.program("failure_blocked")
    outcome = run('exec "$@"', [*limited, program, "mixed", "all", "3"], SHMEM_SYMMETRIC_SIZE="1g")
    must_say(outcome, "reserving")


def few_descriptors(sheet):
    must_say(run('ulimit -n 8 && exec "$@"', working(sheet)), "open files")


def memory_limit_at_start(sheet):
    outcome = run('exec "$@"', working(sheet), SHMEM_SYMMETRIC_SIZE="8g", MEMSPAN_MEMORY_LIMIT="1g")
    must_say(outcome, "8 GiB", "1 GiB", "MEMSPAN_MEMORY_LIMIT")


def memory_limit_at_malloc(sheet):
    """Beyond the limit an allocation gives NULL; the program then says so itself."""
    outcome = run(
        'exec "$@"',
        [*command(sheet)[:5], sheet.plan.program("failure_early"), "limit", "0", "0", "-", "1", "0"],
        MEMSPAN_MEMORY_LIMIT="80m",
    )
    code, out, errors = outcome
    check(code == 0 and out.count("refused 1") == RANKS, f"code {code}: {out + errors!r}")


def no_huge_pages(sheet):
    """None are reserved, and transparent ones are off for the process."""
    with open("/proc/sys/vm/nr_hugepages", encoding="ascii") as pages:
        if int(pages.read()) != 0:
            raise Missing("this machine has huge pages reserved")
    must_work(run('exec "$@"', working(sheet)))


def control_group(sheet):
    """A memory control group of 64 MiB; allocations of more are refused, not killed."""
    for root, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = os.path.join(root, f"memspan-test-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            if not os.path.exists(os.path.join(group, limit)):
                continue
            with open(os.path.join(group, limit), "w", encoding="ascii") as file:
                file.write(str(64 << 20))
            in_group = f'echo $$ > {group}/cgroup.procs && exec "$@"'
            words = [*command(sheet)[:5], sheet.plan.program("failure_early")]
            code, out, errors = run(in_group, [*words, "limit", "0", "0", "-", "1", "0"])
            check(code == 0 and out.count("refused 1") == RANKS, f"code {code}: {out + errors!r}")
            return
        except OSError as error:
            raise Missing(f"no control group can be made: {error}") from error
        finally:
            remove_group(group)
    raise Missing("no memory control group can be made here")


def remove_group(group):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.rmdir(group)
            return
        except FileNotFoundError:
            return
        except OSError:
            os.sched_yield()  # its last process is ending


CASES = [
    small_dev_shm,
    full_dev_shm,
    no_dev_shm,
    file_size_limit,
    file_size_limit_by_hand,
    address_space_limit,
    few_descriptors,
    memory_limit_at_start,
    memory_limit_at_malloc,
    no_huge_pages,
    control_group,
]


def table(sheet):
    missing = set()
    for case in sheet.pick(CASES, max(len(CASES), min(sheet.plan.rounds, 20 * len(CASES)))):
        if case in missing:
            continue
        name = case.__name__.replace("_", " ")
        with sheet.round(name):
            since = time.monotonic()
            try:
                case(sheet)
                sheet.took(time.monotonic() - since)
            except Missing as reason:
                sheet.n -= 1
                missing.add(case)
                sheet.note(f"not tried: {name}: {reason}")
    if len(missing) == len(CASES):
        raise Skip("nothing of it can be made here")


ROWS = [Row("14", "little memory, small or full /dev/shm, limits", BOUND_MS, table)]
