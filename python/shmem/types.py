# SPDX-License-Identifier: Apache-2.0
"""The classes and enumerations of `shmem`."""

import dataclasses
import enum

_VERSION = 1 << 16
_SECONDS = 120


class OpEngineType(enum.IntFlag):
    """Engines that move data, as preferences; combined by ``|``."""

    MTE = 1
    SDMA = 2
    ROCE = 4
    UDMA = 8


class InitStatus(enum.IntEnum):
    """The results of ``shmem_init_status()``."""

    NOT_INITIALIZED = 0
    SHM_CREATED = 1
    INITIALIZED = 2
    INVALID = 2**31 - 1


class SignalOp(enum.IntEnum):
    """The operations of a signal on its word."""

    SIGNAL_SET = 0
    SIGNAL_ADD = 1


class CmpOp(enum.IntEnum):
    """How a wait compares the word with its value."""

    CMP_EQ = 0
    CMP_NE = 1
    CMP_GT = 2
    CMP_GE = 3
    CMP_LT = 4
    CMP_LE = 5


class MemType(enum.IntEnum):
    """Whose memory: the host's, or a device's."""

    HOST_SIDE = 0
    DEVICE_SIDE = 1


@dataclasses.dataclass
class OptionalAttr:
    """Settings of a start; the time-outs are in seconds, 1 and more."""

    version: int = _VERSION
    data_op_engine_type: int = OpEngineType.MTE
    shm_init_timeout: int = _SECONDS
    shm_create_timeout: int = _SECONDS
    control_operation_timeout: int = _SECONDS
    sockFd: int = -1


@dataclasses.dataclass
class InitAttr:
    """The arguments of ``shmem_init``: the rank among ``n_ranks``, where rank 0 hosts the store
    (``tcp://ip:port``), the bytes of heap per process."""

    my_rank: int = 0
    n_ranks: int = 1
    ip_port: str = ""
    local_mem_size: int = 0
    option_attr: OptionalAttr = dataclasses.field(default_factory=OptionalAttr)


@dataclasses.dataclass
class TeamConfig:
    """How a team was made."""

    num_contexts: int = 0


@dataclasses.dataclass
class UniqueId:
    """The contents of a ``shmem_get_unique_id()`` result; ``internal`` may be longer, as buffers
    are."""

    internal: bytes = b""
    version: int = _VERSION
    my_pe: int = -1
    n_pes: int = -1
