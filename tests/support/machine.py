#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What this machine allows: scripts/probe.sh runs it, and tests ask it by name.

Each capability has a name and a check, which tries it. A test declares the names that it needs (support/needs.py,
needs.h, needs.sh; memspan_needs in CMake) and is skipped if the machine lacks one of them. The names that are lacking
are in MEMSPAN_TEST_LACKS while scripts/test.sh runs, so that each is tried once.
"""

import argparse
import ctypes
import glob
import importlib.util
import json
import os
import platform
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request

SUPPORT = os.path.dirname(os.path.abspath(__file__))
VARIABLE = "MEMSPAN_TEST_LACKS"
LIMIT_S = 20

# The numbers of system calls, where they differ.
_CALLS = {
    "x86_64": {"mbind": 237, "process_vm_readv": 310, "userfaultfd": 323, "perf_event_open": 298, "mlock": 149},
    "aarch64": {"mbind": 235, "process_vm_readv": 270, "userfaultfd": 282, "perf_event_open": 241, "mlock": 228},
}
_CALLS_OF_ALL = {"pidfd_open": 434}


class Lacking(Exception):
    """Its text is the reason, as a part of a sentence."""


def call(name, *arguments):
    """The result of a system call, or Lacking with what the kernel says."""
    number = _CALLS_OF_ALL.get(name) or _CALLS.get(platform.machine(), {}).get(name)
    if number is None:
        raise Lacking(f"the number of {name} on {platform.machine()} is not known")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise Lacking(f"{name}: {os.strerror(ctypes.get_errno())}")
    return result


def run(*words, **options):
    """The output of a command that succeeds; else Lacking with its last line."""
    if shutil.which(words[0]) is None:
        raise Lacking(f"{words[0]} is not installed")
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL, **options)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Lacking(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise Lacking(f"{words[0]}: {lines[-1] if lines else f'exit code {done.returncode}'}")
    return done.stdout


def program(name):
    def check():
        if shutil.which(name) is None and not os.access(f"/usr/sbin/{name}", os.X_OK):
            raise Lacking(f"{name} is not installed")

    return check


def python_module(name):
    def check():
        if importlib.util.find_spec(name) is None:
            raise Lacking(f"Python's module {name} is not installed")

    return check


def try_hosts():
    """What jobs.namespaces.Hosts needs: network, mount and UTS namespaces that a process can enter."""
    sys.path.insert(0, SUPPORT)
    from jobs.namespaces import Hosts  # noqa: PLC0415 - only this check needs it

    try:
        with Hosts(1) as hosts:
            run(*hosts.inside(0), sys.executable, "-c", "pass")
    except subprocess.CalledProcessError as error:
        raise Lacking(f"{error.cmd[0]}: {error.stderr.strip()}") from error
    except (AssertionError, OSError) as error:
        raise Lacking(str(error)) from error


def try_user_namespaces():
    run("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount -t tmpfs none /mnt")


def try_mounts():
    run("unshare", "--mount", "sh", "-c", "mount -t tmpfs none /dev/shm")


def try_nft():
    try_hosts()
    run("unshare", "--net", "nft", "add", "table", "inet", "memspan_probe")


def try_mbind():
    page = ctypes.c_void_p(_page())
    nodes = ctypes.c_ulong(1)
    bind = 2
    call("mbind", page, ctypes.c_ulong(4096), ctypes.c_int(bind), ctypes.byref(nodes), ctypes.c_ulong(2), ctypes.c_uint(0))


_pages = []


def _page():
    import mmap  # noqa: PLC0415

    _pages.append(mmap.mmap(-1, 4096))
    return ctypes.addressof(ctypes.c_char.from_buffer(_pages[-1]))


def try_userfaultfd():
    user_mode_only = 1
    os.close(call("userfaultfd", ctypes.c_int(os.O_CLOEXEC | user_mode_only)))


def try_process_vm():
    """Of another process of this user, as the library does."""
    child = subprocess.Popen([sys.executable, "-c", """
import ctypes, mmap, sys
page = mmap.mmap(-1, 4096)
ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1 & (2**64 - 1)), 0, 0, 0)
print(ctypes.addressof(ctypes.c_char.from_buffer(page)), flush=True)
sys.stdin.read()
"""], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        theirs = int(child.stdout.readline())

        class Range(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]

        local, remote = Range(_page(), 8), Range(theirs, 8)
        call("process_vm_readv", ctypes.c_int(child.pid), ctypes.byref(local), ctypes.c_ulong(1), ctypes.byref(remote),
             ctypes.c_ulong(1), ctypes.c_ulong(0))
    finally:
        child.communicate()


def try_pidfd():
    os.close(call("pidfd_open", ctypes.c_int(os.getpid()), ctypes.c_uint(0)))


def try_huge_pages():
    """As support/huge_pages.h looks: a memfd gets a huge page when it is advised and populated, or collapsed."""
    import mmap  # noqa: PLC0415

    huge, populate_write, collapse = 2 << 20, 23, 25
    settings = {}
    for name in ("enabled", "shmem_enabled"):
        try:
            with open(f"/sys/kernel/mm/transparent_hugepage/{name}", encoding="ascii") as file:
                settings[name] = file.read().partition("[")[2].partition("]")[0]
        except OSError as error:
            raise Lacking(f"transparent_hugepage/{name}: {error.strerror}") from error
    if settings["shmem_enabled"] == "deny" or (settings["shmem_enabled"], settings["enabled"]) == ("never", "never"):
        raise Lacking("transparent huge pages of shared memory are off")
    descriptor = os.memfd_create("huge-page-probe")
    os.ftruncate(descriptor, huge)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    room = mmap.mmap(-1, 2 * huge)  # an aligned huge page fits in it
    _pages.append(room)
    address = ctypes.addressof(ctypes.c_char.from_buffer(room))
    place = ctypes.c_void_p((address + huge - 1) // huge * huge)
    fixed = 0x10
    libc.mmap(place, huge, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED | fixed, descriptor, 0)
    os.close(descriptor)
    libc.madvise(place, ctypes.c_size_t(huge), mmap.MADV_HUGEPAGE)
    if libc.madvise(place, ctypes.c_size_t(4096), populate_write) != 0:
        raise Lacking("the kernel does not populate mappings (Linux 5.14)")
    if settings["shmem_enabled"] == "never" and libc.madvise(place, ctypes.c_size_t(huge), collapse) != 0:
        raise Lacking("the kernel does not collapse pages (Linux 6.1)")
    found, inside = 0, False
    with open("/proc/self/smaps", encoding="ascii") as file:
        for line in file:
            bounds = line.split(" ", 1)[0].split("-")
            if len(bounds) == 2:
                inside = int(bounds[0], 16) <= place.value < int(bounds[1], 16)
            elif inside and line.startswith("ShmemPmdMapped"):
                found = int(line.split()[1]) << 10
    if found < huge:
        raise Lacking("the kernel has no huge page to give")


def try_perf():
    # struct perf_event_attr: PERF_TYPE_HARDWARE, its size, PERF_COUNT_HW_INSTRUCTIONS; user mode only.
    attributes = bytearray(128)
    attributes[4:8] = (128).to_bytes(4, sys.byteorder)
    attributes[8:16] = (1).to_bytes(8, sys.byteorder)
    attributes[40:48] = (1 << 5 | 1 << 6).to_bytes(8, sys.byteorder)
    buffer = (ctypes.c_char * 128).from_buffer(attributes)
    os.close(call("perf_event_open", buffer, ctypes.c_int(0), ctypes.c_int(-1), ctypes.c_int(-1), ctypes.c_ulong(0)))


def try_mlock():
    call("mlock", ctypes.c_void_p(_page()), ctypes.c_ulong(4096))


def try_real_time():
    """Whether it would be allowed; nothing takes it."""
    if os.geteuid() != 0 and resource.getrlimit(resource.RLIMIT_RTPRIO)[0] == 0:
        raise Lacking("RLIMIT_RTPRIO is 0")


def try_dev_shm():
    least = 1 << 30
    try:
        has = os.statvfs("/dev/shm")
    except OSError as error:
        raise Lacking(f"/dev/shm: {error.strerror}") from error
    free = has.f_bavail * has.f_frsize
    if free < least:
        raise Lacking(f"/dev/shm has {free >> 20} MiB free, {least >> 20} MiB are needed")


def try_two_cores():
    if len(os.sched_getaffinity(0)) < 2:
        raise Lacking("this process may use one core")


def try_large_memory():
    least = 16 << 30
    with open("/proc/meminfo", encoding="ascii") as file:
        lines = dict(line.split(":") for line in file)
    available = int(lines["MemAvailable"].split()[0]) << 10
    if available < least:
        raise Lacking(f"{available >> 30} GiB of memory are available, {least >> 30} GiB are needed")


def try_other_users():
    """To be another user, and to give that user a file."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresuid(65534, 65534, 65534)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != 0:
        raise Lacking(f"setresuid: {os.strerror(code)}")
    with tempfile.NamedTemporaryFile() as file:
        try:
            os.chown(file.name, 65534, 65534)
        except OSError as error:
            raise Lacking(f"chown: {error.strerror}") from error


def try_capture():
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()
    except OSError as error:
        raise Lacking(f"a raw socket: {error.strerror}") from error


def try_low_ports():
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
            server.bind(("127.0.0.1", 53))
    except OSError as error:
        raise Lacking(f"port 53: {error.strerror}") from error


def try_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as server:
            server.bind(("::1", 0))
    except OSError as error:
        raise Lacking(f"::1: {error.strerror}") from error


def try_localhost():
    try:
        socket.getaddrinfo("localhost", 80)
    except OSError as error:
        raise Lacking(f"the name localhost: {error}") from error


def try_host_name():
    try:
        socket.getaddrinfo(socket.gethostname(), None)
    except OSError as error:
        raise Lacking(f"the name {socket.gethostname()}: {error}") from error


def try_advice():
    """Emulators take any advice about memory, and follow none."""
    no_such = 9999
    if ctypes.CDLL(None).madvise(ctypes.c_void_p(_page()), ctypes.c_size_t(4096), no_such) == 0:
        raise Lacking("madvise accepts advice that does not exist")


def try_seccomp():
    get_seccomp = 21
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(get_seccomp, 0, 0, 0, 0) != 0:
        raise Lacking(f"prctl(PR_GET_SECCOMP): {os.strerror(ctypes.get_errno())}")


def try_descriptors():
    least = 4096
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= allowed < least:
        raise Lacking(f"RLIMIT_NOFILE allows {allowed}, {least} are needed")


def try_memory_group():
    for root in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup"):
        group = os.path.join(root, f"memspan-probe-{os.getpid()}")
        try:
            os.mkdir(group)
        except OSError:
            continue
        try:
            if glob.glob(os.path.join(group, "memory.*")):
                return
        finally:
            os.rmdir(group)
    raise Lacking("no memory control group can be made in /sys/fs/cgroup")


def try_sshd():
    """A server with a key of its own. Some systems lack the user, or the folder, in which it gives up its rights."""
    run("ssh", "-V")
    try:
        os.makedirs("/run/sshd", exist_ok=True)
    except OSError as error:
        raise Lacking(f"/run/sshd: {error.strerror}") from error
    sshd = shutil.which("sshd") or "/usr/sbin/sshd"
    if not os.access(sshd, os.X_OK):
        raise Lacking("sshd is not installed")
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        run(sshd, "-t", "-h", key, "-f", "/dev/null")


def try_etcd():
    run("etcd", "--version")


def try_containers():
    for name in ("podman", "crun", "debootstrap"):
        program(name)()
    try_mounts()


def try_empty_systems():
    program("debootstrap")()
    try_mounts()
    run("unshare", "--mount", "--pid", "--fork", "chroot", "/", "true")


def try_ubuntu():
    """What makes its systems is a package of Debian 13; only its server may be out of reach."""
    try_empty_systems()
    address = "http://archive.ubuntu.com/ubuntu/dists/noble/Release"
    try:
        urllib.request.urlopen(address, timeout=20).close()
    except OSError as error:
        raise Lacking(f"{address}: {error}") from error


def try_pypi():
    """One small package, in an environment of its own."""
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, "-m", "venv", folder)
        run(os.path.join(folder, "bin", "python"), "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "pathspec==0.12.1")


def try_gpu():
    run("nvidia-smi", "-L")


# name: (what a person calls it, how it is tried)
CAPABILITIES = {
    "hosts": ("simulated hosts (network and mount namespaces)", try_hosts),
    "nft": ("dropped packets (nftables in network namespaces)", try_nft),
    "mounts": ("mount namespaces", try_mounts),
    "user_namespaces": ("user namespaces", try_user_namespaces),
    "other_users": ("processes and files of other users", try_other_users),
    "mbind": ("placing memory on NUMA nodes (mbind)", try_mbind),
    "userfaultfd": ("userfaultfd", try_userfaultfd),
    "process_vm": ("reading another process's memory (process_vm_readv)", try_process_vm),
    "pidfd": ("watching processes (pidfd_open)", try_pidfd),
    "mlock": ("locking memory (mlock)", try_mlock),
    "huge_pages": ("huge pages of shared memory", try_huge_pages),
    "advice": ("advice about memory (madvise)", try_advice),
    "seccomp": ("filters of system calls (seccomp)", try_seccomp),
    "dev_shm": ("a /dev/shm with 1 GiB free", try_dev_shm),
    "memory_16g": ("16 GiB of available memory", try_large_memory),
    "memory_group": ("memory control groups", try_memory_group),
    "descriptors": ("4096 open files", try_descriptors),
    "two_cores": ("two cores", try_two_cores),
    "real_time": ("real-time priority", try_real_time),
    "perf": ("counting instructions (perf_event_open)", try_perf),
    "capture": ("capturing packets", try_capture),
    "low_ports": ("ports below 1024", try_low_ports),
    "ipv6": ("IPv6 on the loopback", try_ipv6),
    "localhost": ("the name localhost", try_localhost),
    "host_name": ("an address for the host's own name", try_host_name),
    "sshd": ("an SSH server", try_sshd),
    "etcd": ("etcd", try_etcd),
    "ucx": ("UCX", program("ucx_info")),
    "openmpi": ("Open MPI", program("mpirun.openmpi")),
    "mpich": ("MPICH", program("mpiexec.hydra")),
    "valgrind": ("Valgrind", program("valgrind")),
    "git": ("git", program("git")),
    "nvcc": ("CUDA's compiler", program("nvcc")),
    "gpu": ("an NVIDIA GPU", try_gpu),
    "pypi": ("packages of PyPI", try_pypi),
    "torch": ("PyTorch", python_module("torch")),
    "containers": ("containers (podman, crun, debootstrap)", try_containers),
    "empty_systems": ("empty Debian systems (debootstrap, chroot)", try_empty_systems),
    "ubuntu": ("Ubuntu's packages", try_ubuntu),
    "emulator": ("an emulator of aarch64", program("qemu-aarch64")),
}


def why_lacking(name):
    """The reason, or None if the machine has it."""
    try:
        CAPABILITIES[name][1]()
    except Lacking as reason:
        return str(reason)
    return None


def lacking(names=None):
    """{name: reason} of what this machine lacks."""
    reasons = {name: why_lacking(name) for name in names or CAPABILITIES}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def main():
    parser = argparse.ArgumentParser(prog="probe.sh", description="Report what this machine allows tests to do.")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--lacks", action="store_true", help="print only the names of what is lacking")
    form.add_argument("--reasons", action="store_true", help="print a line NAME, tab, reason for each that is lacking")
    form.add_argument("--json", action="store_true", help="print a JSON object: null, or the reason why it is lacking")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"try these only: {', '.join(CAPABILITIES)}")
    arguments = parser.parse_args()
    names = arguments.names or list(CAPABILITIES)
    for name in names:
        if name not in CAPABILITIES:
            parser.error(f'unknown capability "{name}"; known are {", ".join(CAPABILITIES)}')
    lacks = lacking(names)
    if arguments.json:
        print(json.dumps({name: lacks.get(name) for name in names}, indent=2))
    elif arguments.reasons:
        for name, reason in lacks.items():
            print(f"{name}\t{CAPABILITIES[name][0]} ({reason})")
    elif arguments.lacks:
        print(" ".join(lacks))
    else:
        width = max(len(name) for name in names)
        for name in names:
            state = f"no: {lacks[name]}" if name in lacks else "yes"
            print(f"{name:{width}}  {CAPABILITIES[name][0]}: {state}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
