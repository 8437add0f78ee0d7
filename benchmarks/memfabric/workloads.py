# SPDX-License-Identifier: Apache-2.0
"""What the table of MemFabric has: its rows, their targets, and the arithmetic of a row.

Everything is time, in microseconds, and a ratio is ours over another's of the same round: below 1 we
are faster. The result is the median of the rounds' ratios.
"""

from dataclasses import dataclass, field
from statistics import median, quantiles

Figures = dict[tuple[str, int], float]  # (name, size) -> microseconds, or a count

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
BLOCK = 61 * (128 + 16) * KIB
MANY = 100_000
COPY = 1 / 0.95  # of the bare time: 0.95 of its speed
SINGLE = 1.1  # of the bare time: a transfer of one piece
RIVALS = ("Mooncake",)


@dataclass(frozen=True)
class Target:
    """`kind`: "bare" and a rival's name are ratios of times, "us" is a time, "piece" what a piece of
    many costs above the bare way, in ns, "count" what is not a time."""

    kind: str
    most: float


@dataclass(frozen=True)
class Row:
    label: str
    figure: str
    size: int
    targets: tuple[Target, ...] = ()
    rivals: str = ""  # the figure that rivals have for it; without one, they have none
    pieces: int = 1
    unit: str = "us"
    is_short: bool = False  # is in the document, too

    @property
    def total(self) -> int:
        """Bytes that one call moves; 0 where that says nothing."""
        if self.unit != "us" or not self.rivals or self.rivals == "register":
            return 0
        return self.size if self.figure.endswith("block") else self.size * self.pieces


def rows() -> list[Row]:
    return [
        *pool_rows(),
        *transfer_rows("trans", "ordinary memory"),
        *transfer_rows("mapped", "the library's memory"),
        *transfer_rows("adopted", "adopted memory"),
        *other_rows(),
    ]


def pool_rows() -> list[Row]:
    return copy_rows(
        "bm",
        "pool",
        block=(Target("bare", COPY),),
        single={4 * KIB: (Target("us", 0.3),), 16 * KIB: (), 64 * KIB: (Target("bare", COPY),)},
        batch=lambda size: (Target("bare", COPY),) if size >= 64 * KIB else (),
        many=(Target("piece", 100),),
    )


def transfer_rows(prefix: str, label: str) -> list[Row]:
    if prefix != "trans":
        return copy_rows(
            prefix,
            label,
            block=(Target("bare", COPY), Target("Mooncake", 0.1)),
            single={4 * KIB: (), 16 * KIB: (), 64 * KIB: (Target("bare", SINGLE),)},
            batch=lambda size: (Target("bare", COPY),) if size >= 64 * KIB else (),
            many=(Target("piece", 100),),
        )
    return copy_rows(
        prefix,
        label,
        block=(Target("bare", COPY), Target("Mooncake", 0.1)),
        single={size * KIB: (Target("bare", SINGLE),) for size in (4, 16, 64)},
        batch=lambda size: (Target("bare", COPY),) if size >= 64 * KIB else (),
        many=(Target("bare", 1.1),),
    )


def copy_rows(prefix: str, label: str, block, single, batch, many) -> list[Row]:
    made = []
    for way in ("write", "read"):
        at, text = f"{prefix}_{way}", f"{label}, {way}"

        def row(name: str, what: str, size: int, targets, pieces: int, is_short: bool) -> Row:
            rivals = f"{way}_{name}"
            figure = f"{at}_{name}"
            return Row(f"{text}, {what}", figure, size, targets, rivals, pieces, is_short=is_short)

        made.append(row("block", "cache block", BLOCK, block, 122, True))
        for size, targets in single.items():
            made.append(row("single", "one", size, targets, 1, True))
        for shift in range(10):
            size = 32 * KIB << shift
            is_short = way == "write" and size in (32 * KIB, 256 * KIB, 2 * MIB, 16 * MIB)
            made.append(row("batch", "32 in a row", size, batch(size), 32, False))
            made.append(row("scattered", "32 scattered", size, batch(size), 32, is_short))
        for size in (256, 4 * KIB):
            made.append(row("many", "100,000", size, many, MANY, True))
    return made


def other_rows() -> list[Row]:
    churn = "10,000 times joined and left: "
    return [
        Row("register", "trans_register", GIB, (Target("us", 1e3),), "register", is_short=True),
        Row("deregister", "trans_deregister", GIB),
        Row("adopt", "trans_adopt", 256 * MIB, is_short=True),
        Row("give adopted memory back", "trans_deadopt", 256 * MIB),
        Row("start of 2 members", "bm_start", 2, (Target("us", 50e3),), is_short=True),
        Row("start of 8 members", "bm_start", 8, (Target("us", 150e3),), is_short=True),
        Row(churn + "once", "churn_cycle", 10_000, is_short=True),
        *(
            Row(churn + what, figure, 10_000, (Target("count", most),), unit=unit, is_short=True)
            for what, figure, most, unit in (
                ("wrong bytes", "churn_wrong_bytes", 0, "bytes"),
                ("more memory, remaining member", "churn_memory_who_stays", 512, "KiB"),
                ("more memory, leaving member", "churn_memory_who_leaves", 512, "KiB"),
                ("more descriptors, remaining member", "churn_descriptors_who_stays", 0, ""),
                ("more descriptors, leaving member", "churn_descriptors_who_leaves", 0, ""),
            )
        ),
    ]


def parse(output: str) -> Figures:
    """The lines `name size value unit least most repetitions`; anything else is a remark."""
    figures: Figures = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) != 7 or words[3] not in ("us", "KiB", "count"):
            continue
        try:
            figures[words[0], int(words[1])] = float(words[2])
        except ValueError:
            continue
    return figures


@dataclass
class Sample:
    """One round's figures about a row; None where a side has none."""

    ours: float | None
    bare: float | None = None
    rivals: dict[str, float] = field(default_factory=dict)

    def other(self, side: str) -> float | None:
        return self.bare if side == "bare" else self.rivals.get(side)


@dataclass
class Result:
    row: Row
    samples: list[Sample]

    def median_of(self, side: str) -> float | None:
        values = [s.ours if side == "ours" else s.other(side) for s in self.samples]
        values = [value for value in values if value is not None]
        return median(values) if values else None

    def ratios(self, side: str) -> list[float]:
        pairs = [(s.ours, s.other(side)) for s in self.samples]
        return [ours / other for ours, other in pairs if ours is not None and other]

    def ratio(self, side: str) -> float | None:
        values = self.ratios(side)
        return median(values) if values else None

    def above_bare(self) -> list[float]:
        """What each piece costs above the bare way, in ns."""
        pairs = [(s.ours, s.bare) for s in self.samples]
        return [(a - b) * 1e3 / self.row.pieces for a, b in pairs if a is not None and b is not None]

    def values(self, target: Target) -> list[float]:
        """What the target is about, round by round."""
        if target.kind == "piece":
            return self.above_bare()
        if target.kind in ("us", "count"):
            return [s.ours for s in self.samples if s.ours is not None]
        return self.ratios(target.kind)

    def verdict(self, target: Target) -> str:
        """`level` is a median above the target whose lower quartile is not."""
        values = self.values(target)
        if not values:
            return "not measured"
        if median(values) <= target.most:
            return "met"
        lower = quantiles(values, n=4, method="inclusive")[0] if len(values) > 1 else values[0]
        return "level" if lower <= target.most else "missed"

    def missed(self) -> bool:
        return any(self.verdict(target) == "missed" for target in self.row.targets)
