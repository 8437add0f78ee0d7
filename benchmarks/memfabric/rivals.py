# SPDX-License-Identifier: Apache-2.0
"""The rivals of a round: UCX's own program over shared memory, by the kernel's copies (cma) and over
TCP, and Mooncake's transfer engine over TCP. One that is not there, or fails, has no figures, and the
reason is kept.

UCX has no call for many pieces: its time for one piece of each size is multiplied. Shared memory and
TCP are puts; cma is what UCX takes for large messages, as it puts nothing by cma.
"""

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))

import jobs
from workloads import BLOCK, KIB, MANY, MIB, Figures, parse

# side -> (transports, bandwidth test, latency test, most bytes of a piece)
TRANSPORTS = {
    "UCX shm": ("posix", "ucp_put_bw", "ucp_put_lat", 16 * MIB),
    "UCX cma": ("posix,cma", "tag_bw", "tag_lat", 16 * MIB),
    "UCX tcp": ("tcp", "ucp_put_bw", "ucp_put_lat", 2 * MIB),
}
SIZES = (256, 4 * KIB, 16 * KIB, 32 * KIB, 128 * KIB, 256 * KIB, 2 * MIB, 16 * MIB)
LATENCIES = (4 * KIB, 64 * KIB)


@dataclass
class Rivals:
    mooncake_python: Path
    timeout: float
    quick: bool = False
    failures: dict[str, list[str]] = field(default_factory=dict)

    def round(self) -> dict[str, Figures]:
        """By side, under the names without the side's: write_block, read_many, register, ..."""
        figures = {side: self.ucx(side) for side in TRANSPORTS}
        figures["Mooncake"] = self.mooncake()
        return figures

    def fail(self, side: str, reason: str) -> None:
        kept = self.failures.setdefault(side, [])
        if reason not in kept:
            kept.append(reason)

    # ---- UCX ----------------------------------------------------------------------------------

    def ucx(self, side: str) -> Figures:
        program = shutil.which("ucx_perftest")
        if not program:
            self.fail(side, "ucx_perftest is not installed")
            return {}
        transports, bandwidth, latency, most = TRANSPORTS[side]
        of_a_piece, of_one = {}, {}
        for size in SIZES if not self.quick else SIZES[:5]:
            if size <= most:
                of_a_piece[size] = self.perftest(side, program, transports, bandwidth, size)
        for size in LATENCIES:
            of_one[size] = self.perftest(side, program, transports, latency, size)
        return from_pieces(of_a_piece, of_one)

    def perftest(self, side: str, program: str, transports: str, test: str, size: int) -> float | None:
        """Microseconds of one message; None when it failed."""
        budget = 16 * MIB if transports == "tcp" else 128 * MIB
        count = max(20, min(20_000, budget // size))
        environment = {"UCX_TLS": f"{transports},self", "UCX_NET_DEVICES": "lo"}
        if "cma" in transports:  # a rendezvous, by the kernel's copy, as soon as it is one
            environment["UCX_RNDV_THRESH"] = "4096"
        port = free_port()
        last = str(max(0, (os.cpu_count() or 1) - 1))
        server = subprocess.Popen(
            [program, "-c", last, "-p", str(port)],
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            command = [program, "127.0.0.1", "-p", str(port), "-c", "0", "-t", test, "-f"]
            command += ["-s", str(size), "-n", str(count), "-w", str(max(5, count // 10))]
            done = self.when_it_listens(server, command, environment)
        finally:
            jobs.end(server)
        found = perftest_microseconds(done.output)
        if found is None:
            self.fail(side, f"{test} of {size} bytes: {done.failure or 'no figure'}")
        return found

    def when_it_listens(self, server, command: list[str], environment: dict[str, str]) -> jobs.Outcome:
        """The client gives up at once when nobody listens yet, so it is started again."""
        for _ in range(200):
            done = jobs.run(command, environment, self.timeout)
            if not done.failure or "connect" not in done.output.lower() or server.poll() is not None:
                break
        return done

    # ---- Mooncake -----------------------------------------------------------------------------

    def mooncake(self) -> Figures:
        if not self.mooncake_python.exists():
            self.fail("Mooncake", "not installed (install_rivals.sh)")
            return {}
        command = [str(self.mooncake_python), str(HERE / "mooncake_rival.py")]
        done = jobs.run(command, {"PYTHONDONTWRITEBYTECODE": "1"}, self.timeout)
        if done.failure:
            said = [line for line in done.output.splitlines() if "mooncake_rival" in line or "Error" in line]
            self.fail("Mooncake", f"{done.failure} {said[-1] if said else ''}".strip())
        return {
            (name.removeprefix("mooncake_"), size): value
            for (name, size), value in parse(done.output).items()
        }


def from_pieces(of_a_piece: dict[int, float | None], of_one: dict[int, float | None]) -> Figures:
    """UCX's times of the workloads; writes only."""
    figures: Figures = {}
    for size, value in of_one.items():
        if value is not None:
            figures["write_single", size] = value
    known = {size: value for size, value in of_a_piece.items() if value is not None}
    for size, value in known.items():
        figures["write_batch", size] = figures["write_scattered", size] = 32 * value
        if size in (256, 4 * KIB):
            figures["write_many", size] = MANY * value
    if 16 * KIB in known and 128 * KIB in known:
        figures["write_block", BLOCK] = 61 * (known[16 * KIB] + known[128 * KIB])
    return figures


def perftest_microseconds(output: str) -> float | None:
    """Of the last line: iterations, the median, the average and the overall time of a message, ..."""
    lines = [line.split() for line in output.splitlines() if line.strip()]
    if not lines or len(lines[-1]) != 8:
        return None
    try:
        return float(lines[-1][3])
    except ValueError:
        return None


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
