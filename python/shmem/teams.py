# SPDX-License-Identifier: Apache-2.0
"""The processes (PEs) of the job, and teams of them. Team 0 is all; -1 is invalid."""

from typing import NoReturn

from memspan import _core
from memspan.errors import Error, InvalidArgument
from shmem.types import TeamConfig

_c = _core.shmem

TEAM_WORLD = 0
TEAM_INVALID = -1


def get_my_pe() -> int:
    """This process's number, 0 and more; -1 in no job."""
    return _c.my_pe()


def get_pe_count() -> int:
    """How many processes there are; -1 in no job."""
    return _c.n_pes()


def team_my_pe(team_id: int) -> int:
    """This process's number in a team; -1 when it is in none of that number."""
    return _c.team_my_pe(team_id)


def team_n_pes(team_id: int) -> int:
    """How many are in a team; -1 for no team."""
    return _c.team_n_pes(team_id)


def get_team_my_pe(team: int) -> int:
    """``team_my_pe``: this process's number in a team; -1 when it is in none of that number."""
    return team_my_pe(team)


def get_team_pe_count(team: int) -> int:
    """``team_n_pes``: how many are in a team; -1 for no team."""
    return team_n_pes(team)


def my_pe(team: int = TEAM_WORLD) -> int:
    """``get_my_pe()``, or ``team_my_pe(team)``."""
    return get_my_pe() if team == TEAM_WORLD else team_my_pe(team)


def pe_count(team: int = TEAM_WORLD) -> int:
    """``get_pe_count()``, or ``team_n_pes(team)``."""
    return get_pe_count() if team == TEAM_WORLD else team_n_pes(team)


def _raise(code: int) -> NoReturn:
    wrong = code in (-1, -2)
    raise (InvalidArgument if wrong else Error)(_core.last_error(), code)


def team_split_strided(parent: int, start: int, stride: int, size: int) -> int:
    """A team of processes start, start + stride, ... of ``parent``, ``size`` of them. Local: its
    members make it together at its first collective. The process's number in it; -1 for a process
    outside of it. Raises ``shmem.errors.InvalidArgument`` (a ValueError) for a wrong argument,
    Error when memory is short."""
    code, team = _c.team_split_strided(parent, start, stride, size)
    return team if code == 0 else _raise(code)


def team_split_2d(parent: int, x_range: int) -> tuple[int, int]:
    """The rows (of ``x_range`` processes) and columns of ``parent``: the numbers (x, y) of this
    process's row and column team; local, as ``team_split_strided``. Raises as ``team_split_strided``."""
    code, x_team, y_team = _c.team_split_2d(parent, x_range)
    return (x_team, y_team) if code == 0 else _raise(code)


def team_translate_pe(src_team: int, src_pe: int, dest_team: int) -> int:
    """The number in ``dest_team`` of what is ``src_pe`` in ``src_team``; -1 when it has none."""
    return _c.team_translate_pe(src_team, src_pe, dest_team)


def team_destroy(team: int) -> None:
    """Ends a team here; local."""
    _c.team_destroy(team)


def shmem_team_get_config(team: int) -> TeamConfig:
    """How a team was made, a ``TeamConfig``. Raises ``shmem.errors.InvalidArgument`` for no team."""
    code, contexts = _c.team_config(team)
    return TeamConfig(contexts) if code == 0 else _raise(code)
