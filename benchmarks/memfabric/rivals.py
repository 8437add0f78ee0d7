# SPDX-License-Identifier: Apache-2.0
"""The rival of a round: Mooncake's transfer engine over TCP. One that is not there, or fails, has no
figures, and the reason is kept.

UCX and NIXL are not here: UCX's own program repeats one message from and to one place, which is not
the work of these rows, and NIXL, over UCX, is measured in the same processes (python/rivals.py).
"""

import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))

import jobs
from workloads import Figures, parse


@dataclass
class Rivals:
    mooncake_python: Path
    timeout: float
    failures: dict[str, list[str]] = field(default_factory=dict)

    def round(self) -> dict[str, Figures]:
        """By side, under the names without the side's: write_block, read_many, register, ..."""
        return {"Mooncake": self.mooncake()}

    def fail(self, side: str, reason: str) -> None:
        kept = self.failures.setdefault(side, [])
        if reason not in kept:
            kept.append(reason)

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
