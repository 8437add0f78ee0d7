# SPDX-License-Identifier: Apache-2.0
"""Queries that need no object."""

from shmem.startup import shmem_init_status as init_status
from shmem.teams import get_my_pe as my_pe
from shmem.teams import get_pe_count as n_pes
from shmem.teams import team_my_pe, team_n_pes
from shmem.types import CmpOp as ComparisonType
from shmem.types import InitStatus, SignalOp

__all__ = [
    "ComparisonType",
    "InitStatus",
    "SignalOp",
    "init_status",
    "my_pe",
    "n_pes",
    "team_my_pe",
    "team_n_pes",
]
