# SPDX-License-Identifier: Apache-2.0
"""Who is in the job: processes (PEs) and teams of them. Team 0 is all; -1 is no team."""

from memspan import _core
from memspan.errors import Error, InvalidArgument
from shmem.types import TeamConfig

_c = _core.shmem

TEAM_WORLD = 0
TEAM_INVALID = -1


def get_my_pe():
    """This process's number, 0 and more; -1 in no job."""
    return _c.my_pe()


def get_pe_count():
    """How many processes there are; -1 in no job."""
    return _c.n_pes()


def team_my_pe(team_id):
    """This process's number in a team; -1 when it is in none of that number."""
    return _c.team_my_pe(team_id)


def team_n_pes(team_id):
    """How many are in a team; -1 for no team."""
    return _c.team_n_pes(team_id)


def get_team_my_pe(team):
    """``team_my_pe``."""
    return team_my_pe(team)


def get_team_pe_count(team):
    """``team_n_pes``."""
    return team_n_pes(team)


def my_pe(team=TEAM_WORLD):
    """``get_my_pe()``, or ``team_my_pe(team)``."""
    return get_my_pe() if team == TEAM_WORLD else team_my_pe(team)


def pe_count(team=TEAM_WORLD):
    """``get_pe_count()``, or ``team_n_pes(team)``."""
    return get_pe_count() if team == TEAM_WORLD else team_n_pes(team)


def _raise(code):
    wrong = code in (-1, -2)
    raise (InvalidArgument if wrong else Error)(_core.last_error(), code)


def team_split_strided(parent, start, stride, size):
    """A team of processes start, start + stride, ... of ``parent``, ``size`` of them; all of the
    parent must call it. Its number; -1 for who is not in it. Raises for a wrong argument."""
    code, team = _c.team_split_strided(parent, start, stride, size)
    return team if code == 0 else _raise(code)


def team_split_2d(parent, x_range):
    """The rows (of ``x_range`` processes) and columns of ``parent``: the numbers (x, y) of this
    process's row and column team; all of the parent must call it."""
    code, x_team, y_team = _c.team_split_2d(parent, x_range)
    return (x_team, y_team) if code == 0 else _raise(code)


def team_translate_pe(src_team, src_pe, dest_team):
    """The number in ``dest_team`` of what is ``src_pe`` in ``src_team``; -1 when it has none."""
    return _c.team_translate_pe(src_team, src_pe, dest_team)


def team_destroy(team):
    """Ends a team; all its members must call it."""
    _c.team_destroy(team)


def shmem_team_get_config(team):
    """A ``TeamConfig``."""
    code, contexts = _c.team_config(team)
    return TeamConfig(contexts) if code == 0 else _raise(code)
