#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two hosts, 2 PEs: memspan next to iperf3, UCX, Open MPI's OSHMEM and Intel MPI over TCP, in alternating
rounds.

    python3 benchmarks/hosts/two_hosts.py --build build [--rounds 7] [--quick] [--loopback] [--intel-mpi FOLDER]
                                             [--without SIDE] [--record FILE]

FOLDER is what ``benchmarks/install_rivals.sh`` made.

As root: the hosts are network namespaces with a wire between them; with --loopback all are in one, and
memspan's PEs on simulated hosts that talk TCP. A rival that is not there is left out, and said so. The
tables have medians over the rounds, and the medians of the ratios within each round.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tests/support"), str(REPOSITORY / "benchmarks"), str(Path(__file__).resolve().parent)]

from jobs.namespaces import Namespaces  # noqa: E402

import machine  # noqa: E402
import mpi as mpis  # noqa: E402
import rates  # noqa: E402
import record  # noqa: E402

LIMIT_S = 120
PORT = "23461"


def await_listener(process):
    """Until somebody listens at PORT where the process is."""
    deadline = time.monotonic() + LIMIT_S
    wanted = re.compile(rf":{int(PORT):04X} [0-9A-F:]+ 0A ")
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        for kind in ("tcp", "tcp6"):
            with open(f"/proc/{process.pid}/net/{kind}", encoding="ascii") as table:
                if wanted.search(table.read()):
                    return
        time.sleep(0.01)
    raise RuntimeError(f"{process.args} does not listen")


class Place:
    """Where the two ends run: namespaces, or here."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.addresses = hosts.addresses if hosts else ("127.0.0.1", "127.0.0.1")

    def inside(self, host, *command):
        return [*(self.hosts.inside(host) if self.hosts else []), *command]

    def pair(self, server, client, **environment):
        """What the client printed; the server is ended after it."""
        env = {**os.environ, **environment}
        with subprocess.Popen(self.inside(1, *server), env=env, text=True, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL) as serving:
            try:
                await_listener(serving)
                done = subprocess.run(self.inside(0, *client), env=env, text=True, capture_output=True,
                                      timeout=LIMIT_S)
            finally:
                serving.kill()
        return done.stdout + done.stderr


def iperf3(place, seconds):
    server = ["iperf3", "-s", "-1", "--forceflush", "-B", place.addresses[1], "-p", PORT]
    told = place.pair(server, ["iperf3", "-c", place.addresses[1], "-p", PORT, "-t", str(seconds), "-J"])
    return {"iperf3": json.loads(told)["end"]["sum_received"]["bits_per_second"] / 8e9}


def ucx(place, is_quick):
    """Bandwidth of messages with tags in GB/s, and a round trip of active messages in us."""
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "" if place.hosts else "lo"}
    if place.hosts:
        del environment["UCX_NET_DEVICES"]
    results = {}
    for name, test, size, count in (("am_lat", "ucp_am_lat", 8, 2000), ("tag_bw", "tag_bw", 1 << 20, 1000)):
        count = count // 10 if is_quick else count
        words = ["ucx_perftest", "-p", PORT]
        told = place.pair(words, [*words, place.addresses[1], "-t", test, "-s", str(size), "-n", str(count)],
                          **environment)
        last = [line.split() for line in told.splitlines() if line.startswith("Final:")]
        if not last:
            print(f"ucx_perftest {test}: {told[-300:]}", file=sys.stderr)
            continue
        # latency is one way; bandwidth is MB (2^20) a second
        results[name] = 2 * float(last[0][2]) if test == "ucp_am_lat" else float(last[0][5]) * 2**20 / 1e9
    return results


def read_rates(told):
    found = {}
    for line in told.splitlines():
        words = line.split()
        if len(words) == 4 and words[3] in ("GB/s", "us"):
            found[f"{words[0]} {words[1]}"] = float(words[2])
    return found


def memspan(place, build, target, quick, secret, **environment):
    program = [str(build / "bin/hosts_rates"), target, *quick]
    environment = {**os.environ, "SHMEM_SYMMETRIC_SIZE": "256M", **environment}
    if not place.hosts:
        command = [str(build / "bin/oshrun"), "-n", "2", "--simulate-hosts", "2", "--bind", "none", *program]
        environment.setdefault("MEMSPAN_CARRIER", "tcp")
        done = subprocess.run(command, env=environment, text=True, capture_output=True, timeout=LIMIT_S)
        return read_rates(done.stdout) or print(done.stderr, file=sys.stderr) or {}
    processes = []
    for rank in range(2):
        meeting = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": place.addresses[0],
                   "MASTER_PORT": PORT, "MEMSPAN_JOB_SECRET_FILE": secret}
        processes.append(subprocess.Popen(place.inside(rank, *program), env={**environment, **meeting}, text=True,
                                          stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    told = [process.communicate(timeout=LIMIT_S) for process in processes]
    return read_rates(told[0][0]) or print(told, file=sys.stderr) or {}


def remote_shell(place, folder):
    """A script that enters a host by its address, as ssh would."""
    agent = os.path.join(folder, "agent")
    names = "".join(f"  {address}) name={name} ;;\n" for address, name in zip(place.addresses, place.hosts.names))
    with open(agent, "w", encoding="utf-8") as script:
        script.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\n'
                     f'case $1 in\n{names}esac\nshift\nexec ip netns exec "$name" sh -c "$*"\n')
    os.chmod(agent, 0o700)
    return agent


def intel_mpi(place, rival, program, quick, folder):
    command = [*rival.launcher, "-n", "2", "-ppn", "1" if place.hosts else "2"]
    if place.hosts:
        command += ["-bootstrap", "ssh", "-bootstrap-exec", remote_shell(place, folder), "-hosts", ",".join(place.addresses)]
    # Shared memory is what two processes of one kernel would use.
    environment = {**rival.environment, "I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp",
                   "FI_TCP_IFACE": "eth0" if place.hosts else "lo"}
    for name, value in environment.items():
        command += ["-genv", name, value]
    done = subprocess.run(place.inside(0, *command, program, *quick), text=True, capture_output=True, timeout=LIMIT_S,
                          env={**os.environ, **environment})
    return read_rates(done.stdout) or print((done.stdout + done.stderr)[-500:], file=sys.stderr) or {}


def oshmem(place, program, target, quick, folder):
    command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np", "2", "-x", "SHMEM_SYMMETRIC_SIZE=256M",
               "-x", "UCX_TLS=tcp,self", "--mca", "btl", "tcp,self"]
    if place.hosts:
        command += ["--host", f"{place.addresses[0]}:1,{place.addresses[1]}:1", "--mca", "plm", "rsh", "--mca", "plm_rsh_agent",
                    shlex.quote(remote_shell(place, folder)), "--mca", "oob_tcp_if_include", f"{place.addresses[0]}/24"]
    done = subprocess.run(place.inside(0, *command, program, target, *quick), text=True, capture_output=True,
                          timeout=LIMIT_S)
    return read_rates(done.stdout) or print(done.stderr[-500:], file=sys.stderr) or {}


def build_for_oshmem(folder):
    if not shutil.which("mpirun.openmpi") or not shutil.which("oshcc"):
        return None
    program = os.path.join(folder, "rates")
    source = str(REPOSITORY / "benchmarks/hosts/rates.c")
    done = subprocess.run(["oshcc", "-O2", "-o", program, source], text=True, capture_output=True)
    if done.returncode != 0:
        print(done.stderr, file=sys.stderr)
        return None
    return program


def build_for_mpi(rival, folder):
    program = os.path.join(folder, "mpi_rates")
    rival.compile([REPOSITORY / "benchmarks/hosts/mpi_rates.c"], program)
    return program


def a_round(place, chosen, rival, mpi, folder, secret, number):
    """{side: {row: value}}; mpi is the MPI and its program, or None"""
    quick = ["quick"] if chosen.quick else []
    sides = {"iperf3": lambda: iperf3(place, 1 if chosen.quick else 3)}
    if shutil.which("ucx_perftest"):
        sides["UCX"] = lambda: ucx(place, chosen.quick)
    if rival:
        sides["OSHMEM"] = lambda: oshmem(place, rival, "waits", quick, folder)
    if mpi:
        sides["Intel MPI"] = lambda: intel_mpi(place, *mpi, quick, folder)
    trusted = {"MEMSPAN_CARRIER": "ucx", "MEMSPAN_TRUSTED_FABRIC": "10.78.0.0/24"}
    sides["memspan"] = lambda: memspan(place, chosen.build, "waits", quick, secret)
    sides["memspan, sleeping"] = lambda: memspan(place, chosen.build, "sleeps", quick, secret)
    sides["memspan, ucx"] = lambda: memspan(place, chosen.build, "waits", quick, secret, **trusted)
    sides["memspan, tls"] = lambda: memspan(place, chosen.build, "waits", quick, secret, MEMSPAN_ENCRYPT_DATA="1")
    names = [name for name in sides if name not in chosen.without]
    order = names[number % len(names):] + names[:number % len(names)]
    results = {name: sides[name]() for name in order}
    return {name: results[name] for name in names}


def name_and_size(row):
    name, size = row.split()
    return rates.name_and_size(name, int(size), "GB/s" if is_bandwidth(row) else "us")


def streams(row):
    name, size = name_and_size(row)
    return f"{name}, streams", size


def is_bandwidth(row):
    return row.split()[0] in ("put", "get") and row.split()[1] != "8"


def compared(rounds, row, rival, rival_row, target, names=None, ours="memspan"):
    """A row of the record; None if the rival has no such figure."""
    values = [[found.get(side, {}).get(key) for found in rounds] for side, key in ((ours, row), (rival, rival_row))]
    if not any(values[1]):
        return None
    name, size = names or name_and_size(row)
    if is_bandwidth(row):
        return record.of_rounds(name, "MB/s", *([value and value * 1e3 for value in side] for side in values), size=size, target=target)
    return record.of_rounds(name, "us", *values, size=size, target=target)


def tables(rounds, is_loopback):
    """{identity: (title, rival, rows)}"""
    rows = list(rounds[0]["memspan"])
    where = ", loopback" if is_loopback else ", namespaces"
    found = {
        "hosts-iperf3": ("iperf3, between hosts", "iperf3", [compared(rounds, row, "iperf3", "iperf3", 1 / 0.9) for row in rows if is_bandwidth(row)]),
        "hosts-ucx": ("UCX, between hosts", "UCX", [compared(rounds, row, "UCX", *(("tag_bw", 1) if is_bandwidth(row) else ("am_lat", 2)))
                                                  for row in rows if is_bandwidth(row) or int(row.split()[1]) <= 8]),  # the rest is no round trip
        "hosts-over-ucx": ("UCX's own tag_bw, for memspan over UCX", "UCX tag_bw",
                           [compared(rounds, row, "UCX", "tag_bw", None, streams(row), "memspan, ucx") for row in rows if is_bandwidth(row)]),
        "hosts-intel-mpi": ("Intel MPI, between hosts", "Intel MPI", [compared(rounds, row, "Intel MPI", row, 1) for row in rows]),
        "hosts-oshmem": ("OSHMEM, between hosts", "OSHMEM",
                         [compared(rounds, row, "OSHMEM", row, 0.7, (name_and_size(row)[0] + where, None)) for row in rows if not is_bandwidth(row)]),
    }
    return {identity: (title, rival, kept) for identity, (title, rival, made) in found.items() if (kept := [row for row in made if row])}


def versions_of(mpi):
    def printed(*words):
        found = shutil.which(words[0]) and subprocess.run(words, text=True, capture_output=True, check=False)
        match = found and re.search(r"\d+(\.\d+)+", found.stdout + found.stderr)
        return match.group() if match else "unknown"

    return {"memspan": (REPOSITORY / "VERSION").read_text().strip(), "iperf3": printed("iperf3", "--version"), "UCX": printed("ucx_info", "-v"),
            "OSHMEM": printed("mpirun.openmpi", "--version"), "Intel MPI": mpi[0].version if mpi else "unknown"}


def show(rounds, mpi, chosen):
    """Prints all sides' medians, and adds the tables to the record."""
    for row in rounds[0]["memspan"]:
        cells = (f"{side} {statistics.median(values):.3g}" for side in rounds[0] if (values := [r[side][row] for r in rounds if row in r[side]]))
        print(f"{row} {'GB/s' if is_bandwidth(row) else 'us'}:", *cells, sep="  ")
    words = ["python3", "benchmarks/hosts/two_hosts.py", "--rounds", str(chosen.rounds)]
    words += ["--loopback"] * chosen.loopback + ["--intel-mpi", "build/rivals"] * bool(mpi) + [word for side in chosen.without for word in ("--without", side)]
    for identity, (title, rival, rows) in tables(rounds, chosen.loopback).items():
        print(f"{title}:", *(f"{row.name} {row.size or ''} {row.ratio:.2f}" for row in rows if row.ratio), sep="  ")
        if chosen.record:
            versions = {name: version for name, version in versions_of(mpi).items() if name == "memspan" or rival.startswith(name)}
            record.add(chosen.record, identity, record.table(title, shlex.join(words), rival, versions, rows, busy=chosen.busy))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=REPOSITORY / "build")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--loopback", action="store_true")
    parser.add_argument("--intel-mpi")
    record.option(parser)
    parser.add_argument("--without", action="append", default=[], help="a side, as OSHMEM, whose small calls take 8 ms")
    chosen = parser.parse_args()
    chosen.build, chosen.busy = chosen.build.resolve(), record.busy_cores()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the namespaces go, too
    if not chosen.loopback and (reason := machine.why_lacking("hosts")):
        sys.exit(f"two_hosts: network namespaces: {reason}. Use --loopback.")
    if not shutil.which("iperf3"):
        sys.exit("two_hosts: iperf3 is missing (apt install iperf3)")
    with tempfile.TemporaryDirectory() as folder:
        secret = os.path.join(folder, "secret")
        with open(os.open(secret, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="utf-8") as file:
            file.write("the secret of two hosts")
        rival = build_for_oshmem(folder)
        mpi = None
        if chosen.intel_mpi:
            found = mpis.find(chosen.intel_mpi)
            mpi = (found, build_for_mpi(found, folder))
        for name, is_there in (("ucx_perftest", shutil.which("ucx_perftest")), ("OSHMEM", rival), ("Intel MPI", mpi)):
            if not is_there:
                print(f"without {name}, which is not here", file=sys.stderr)
        hosts = None if chosen.loopback else Namespaces(2)
        try:
            place = Place(hosts.__enter__() if hosts else None)
            rounds = [a_round(place, chosen, rival, mpi, folder, secret, i) for i in range(chosen.rounds)]
        finally:
            if hosts:
                hosts.close()
    show(rounds, mpi, chosen)


if __name__ == "__main__":
    main()
