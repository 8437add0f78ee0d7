# SPDX-License-Identifier: Apache-2.0
"""What is compared: the jobs of a round, the rows of the table, and the arithmetic of a row.

A ratio is always time over time, so that below 1 is faster, for bandwidths too. Ratios are made
within a round (or, against the bare figure, within one run) and the median over the rounds is the
result: the machine may have been in another state in the next round.
"""

from dataclasses import dataclass, field
from statistics import median, quantiles

Figures = dict[tuple[str, int], tuple[float, str]]  # (name, size) -> (value, unit)

SIZES = (8, 64, 512, 4096, 65536, 1 << 20, 8 << 20, 64 << 20)
LEVEL = 1.0  # not slower
CROWDS = {4: 0.7, 8: 0.45, 16: 0.3}  # processes, target


@dataclass(frozen=True)
class Job:
    """Launches of a program in a round; its wall time is the figure "wall"."""

    name: str
    processes: int
    arguments: tuple[str, ...] = ()
    repeats: int = 1
    program: str = "oshm_bench"
    heap: str = "512M"


# What a bare figure's name may end in: ways to do the same, of which the best counts.
WAYS = ("", "_movsb", "_avx", "_nt")


@dataclass(frozen=True)
class Row:
    job: str
    figure: str
    label: str
    size: int
    target: float  # of memspan / rival
    bare: str = ""  # the figure that bounds it, or its name without WAYS: of the same run, or of `limits`
    bare_factor: float = 1.0
    bare_target: float | None = None


def jobs(quick: bool) -> list[Job]:
    reps, least = ("3", "0.5") if quick else ("7", "2")
    pair = "lat,add,flag,data,barrier,allreduce,rate,put,get"
    crowd = ("-r", reps, "-t", "10", "-m", "4096", "-o", "barrier,allreduce,ring")
    return [
        Job("pair", 2, ("-r", reps, "-t", least, "-o", pair)),
        Job("collectives", 2, ("-r", reps, "-t", least, "-m", "4096", "-o", "coll")),
        *(Job(f"crowd{n}", n, crowd) for n in CROWDS),
        *(Job(f"start{n}", n, repeats=1 if quick else 3, program="empty") for n in (2, 8, 16)),
        *(Job(f"tenth{n}", n, repeats=1 if quick else 3, program="tenth", heap="1200M") for n in (2, 4)),
    ]


def rows(cores: int) -> list[Row]:
    """`cores` says how many of a crowd's processes share one."""
    return [*pair_rows(), *collective_rows(), *bandwidth_rows(), *crowd_rows(cores), *start_rows(), *tenth_rows()]


def pair_rows() -> list[Row]:
    def row(figure: str, label: str, size: int, target: float, bare: str = "", **more) -> Row:
        return Row("pair", figure, label, size, target, bare, **more)

    return [
        row("put_issue", "put, issue", 8, 0.35, "bare_store"),
        row("put_lat", "put + quiet", 8, LEVEL, "bare_store"),
        row("get_lat", "get", 8, 0.35, "bare_load"),
        row("amo_fetch_add", "fetch-add", 8, 0.35, "bare_fetch_add", bare_target=1.3),
        row("put_rate", "non-blocking puts", 8, 0.25),
        row("pingpong_flag", "flag ping-pong", 8, LEVEL, "bare_pingpong", bare_target=1.25),
        row("pingpong_data", "data, fence, flag", 8, 0.9),
        row("pingpong_data", "data, fence, flag", 4096, 0.9),
        row("barrier_all", "barrier_all", 0, 0.6, "bare_one_way", bare_target=2.0),
        row("sync_all", "sync_all", 0, 0.6, "bare_one_way", bare_target=2.0),
        row("allreduce_sum", "sum of longs", 8, 0.95),
    ]


def collective_rows() -> list[Row]:
    """Two processes; each call is timed alone, after a barrier, with the clock's own cost in it."""
    names = {
        "reduce_sum_float": "sum of floats",
        "fcollect": "fcollect",
        "alltoall": "alltoall",
        "broadcast": "broadcast",
    }
    small = [Row("collectives", "fcollect", "fcollect", 8, 0.95)]
    return small + [
        Row("collectives", figure, label, size, 0.6)
        for figure, label in names.items()
        for size in (4096, 1 << 20)
    ]


def bandwidth_rows() -> list[Row]:
    return [
        Row(
            "pair",
            f"{way}_bw",
            f"{way} bandwidth",
            size,
            LEVEL,
            f"bare_{way}_bw",
            bare_target=1 / 0.97 if size >= 4096 else None,
        )
        for way in ("put", "get")
        for size in SIZES
    ]


def crowd_rows(cores: int) -> list[Row]:
    def rows_of(processes: int, target: float) -> list[Row]:
        shared = max(1.0, processes / cores)  # every process of a core must run once
        limit = {"bare": "yield_pp_same_cpu", "bare_factor": shared, "bare_target": 1.3}
        job = f"crowd{processes}"
        return [
            Row(job, "barrier_all", "barrier_all", 0, target, **limit),
            Row(job, "allreduce_sum", "allreduce", 8, target, **limit),
            Row(job, "ring", "word around a ring", 8, target, **limit),
        ]

    return [row for processes, target in CROWDS.items() for row in rows_of(processes, target)]


def start_rows() -> list[Row]:
    """The floor is fork + exec + wait of the launcher and of each process."""
    return [
        Row(
            f"start{n}",
            "wall",
            "start and end",
            0,
            0.15,
            bare="exec_spawn_wait",
            bare_factor=n + 1,
        )
        for n in (2, 8, 16)
    ]


def tenth_rows() -> list[Row]:
    """1 GiB a process, of which a tenth is written: the whole job, and the memory that it takes."""
    return [
        row
        for n in (2, 4)
        for row in (
            Row(f"tenth{n}", "wall", "1 GiB, a tenth written", 0, 0.5),
            Row(f"tenth{n}", "resident", "resident, 1 GiB with a tenth written", 0, 1.2, bare="touched", bare_target=1.2),
        )
    ]


def parse(output: str) -> Figures:
    """The lines `name size value unit min max repetitions`; anything else is a remark."""
    figures: Figures = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) == 7 and words[3] in ("us", "ns", "MB/s", "Mop/s", "MiB"):
            try:
                figures[words[0], int(words[1])] = (float(words[2]), words[3])
            except ValueError:
                continue
    return figures


@dataclass
class Sample:
    """What one round says about a row, in the figure's own unit; None where a side failed."""

    ours: float | None
    rival: float | None
    bare: float | None


@dataclass
class Result:
    row: Row
    unit: str
    samples: list[Sample]
    processes: int
    failures: dict[str, list[str]] = field(default_factory=dict)  # of the row's job, by side

    def median_of(self, side: str) -> float | None:
        values = [v for s in self.samples if (v := getattr(s, side)) is not None]
        return median(values) if values else None

    def ratios(self, against: str) -> list[float]:
        pairs = [(s.ours, getattr(s, against)) for s in self.samples]
        return [self.slowness(a, b) for a, b in pairs if a and b]

    def slowness(self, a: float, b: float) -> float:
        return b / a if self.unit in ("MB/s", "Mop/s") else a / b

    def ratio(self, against: str) -> float | None:
        values = self.ratios(against)
        return median(values) if values else None

    def spread(self) -> tuple[float, float] | None:
        """The quartiles of the rounds' ratios to the rival."""
        values = self.ratios("rival")
        if len(values) < 2:
            return (values[0], values[0]) if values else None
        low, _, high = quantiles(values, n=4, method="inclusive")
        return low, high

    def verdict(self) -> str:
        """`level` is a median above the target whose lower quartile is not."""
        ratio = self.ratio("rival")
        if ratio is None:
            if self.median_of("ours") is None:
                return "memspan failed"
            return "rival failed" if any(self.failures.values()) else "no rival"
        if ratio <= self.row.target:
            return "met"
        return "level" if self.spread()[0] <= self.row.target else "missed"

    def bare_verdict(self) -> str:
        ratio = self.ratio("bare")
        if self.row.bare_target is None or ratio is None:
            return ""
        return "met" if ratio <= self.row.bare_target else "missed"
