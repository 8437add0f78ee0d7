# SPDX-License-Identifier: Apache-2.0
"""Start, end, and settings before the start. Codes are 0, or below 0 for what failed."""

from __future__ import annotations

import math
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

from memspan import _core
from memspan.errors import Error, InvalidArgument
from memspan.remedy import remedy
from shmem.memory import views_in_use
from shmem.types import InitAttr, InitStatus, OpEngineType, UniqueId

_c = _core.shmem

_PORT_AFTER_MASTER = 11  # torchrun's own store has MASTER_PORT
_USUAL_PORT = 8666
_USUAL_HEAP = 1 << 30
_MOST_NAMED = 8  # in a warning
_RANK = "RANK"
_SIZE = "WORLD_SIZE"
_INVALID_VALUE = -2


def _store_of_environment() -> str:
    """The address at which rank 0 hosts the store, by the environment of a launcher."""
    host = os.environ.get("SHMEM_MASTER_ADDR")
    if host is not None:
        return f"tcp://{host}:{os.environ.get('SHMEM_MASTER_PORT', _USUAL_PORT)}"
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    port = os.environ.get("MASTER_PORT")
    if port is None:
        return f"tcp://{host}:{_USUAL_PORT}"
    if not port.isdigit():
        raise ValueError(f'MASTER_PORT is "{port}", allowed are 1 to 65524')
    return f"tcp://{host}:{int(port) + _PORT_AFTER_MASTER}"


_INCOMPLETE = remedy(
    "rank-or-size-missing",
    "shmem_init knows the rank or the number of processes, but not both.",
    "Give both as arguments, or start the program by oshrun, torchrun or mpirun.")


def _timeouts(attributes: InitAttr) -> tuple[int, int, int]:
    options = attributes.option_attr
    return (
        options.shm_init_timeout,
        options.shm_create_timeout,
        options.control_operation_timeout,
    )


def _number_of_launcher(name: str) -> int | None:
    text = os.environ.get(name)
    if text is None:
        return None
    if not text.isdigit():
        raise ValueError(f'{name} is "{text}", which is not a number')
    return int(text)


def _who(mype: int | None, npes: int | None) -> tuple[int, int]:
    """The launcher gives the values that are None. Without one, and without a word, a job of
    one."""
    mype = _number_of_launcher(_RANK) if mype is None else mype
    npes = _number_of_launcher(_SIZE) if npes is None else npes
    if mype is None and npes is None:
        return 0, 1
    if mype is None or npes is None:
        missing, name = ("mype", _RANK) if mype is None else ("npes", _SIZE)
        raise ValueError(f"shmem_init needs {missing}, since {name} is not set{_INCOMPLETE}")
    return mype, npes


def shmem_init(
    mype: int | InitAttr | None = None,
    npes: int | None = None,
    mem_size: int | None = None,
    *,
    attributes: InitAttr | None = None,
) -> int:
    """Start: process ``mype`` of ``npes``, each with ``mem_size`` bytes of symmetric heap.

    Waits for all of them. The launcher (oshrun, torchrun) gives the values that are None; the heap
    then has 1 GiB. Without a launcher ``shmem_init()`` starts a job of one process. The store's
    place comes from SHMEM_MASTER_ADDR and SHMEM_MASTER_PORT, else from MASTER_ADDR and MASTER_PORT
    + 11 (as torchrun sets them), else it is tcp://127.0.0.1:8666. With one argument, an
    ``InitAttr``, that says everything.

    Returns 0 or a code below 0; ``shmem.errors.last_error()`` says why. ValueError when only
    one of rank and number is said.
    """
    if attributes is not None:
        if mype is not None:
            raise TypeError("shmem_init takes only attributes, or rank, number and bytes")
        mype = attributes
    if isinstance(mype, InitAttr):
        if npes is not None or mem_size is not None:
            raise TypeError("shmem_init takes only an InitAttr, or rank, number and bytes")
        attributes = mype
    else:
        mype, npes = _who(mype, npes)
        heap = _USUAL_HEAP if mem_size is None else mem_size
        attributes = InitAttr(mype, npes, _store_of_environment(), heap)
    return _c.init(
        attributes.my_rank,
        attributes.n_ranks,
        attributes.local_mem_size,
        attributes.ip_port,
        int(attributes.option_attr.data_op_engine_type),
        _timeouts(attributes),
    )


def shmem_get_unique_id() -> bytes | None:
    """The data that other processes need to connect to this one, as bytes; None when that fails."""
    return _c.get_unique_id()


def shmem_init_using_unique_id(
    mype: int, npes: int, mem_size: int, uid: bytes | UniqueId
) -> int:
    """Start as process ``mype`` of ``npes``, each with ``mem_size`` bytes of symmetric heap, by the unique
    id that process 0 made and all were sent. Returns 0 or a code below 0; ValueError for what has not
    the size of a unique id."""
    attributes = InitAttr(mype, npes, "", mem_size)
    internal: Any = getattr(uid, "internal", uid)
    return _c.init_by_id(
        mype, npes, mem_size, bytes(internal), int(OpEngineType.MTE), _timeouts(attributes)
    )


def end(stacklevel: int = 3) -> int:
    """Ends; 0 or a code. The warning of what is left names the line that called its caller."""
    views = views_in_use()
    if views:
        more = len(views) - _MOST_NAMED
        warnings.warn(
            f"{len(views)} arrays or memoryviews of the symmetric heap still exist: "
            f"{'; '.join(views[:_MOST_NAMED])}{f'; and {more} more' if more > 0 else ''}. The heap ends "
            "now; they keep the last bytes, as memory of this process, until they are freed",
            RuntimeWarning,
            stacklevel=stacklevel,
        )
    return _c.finalize()


def shmem_finalize() -> None:
    """End; waits for all. Existing arrays and memoryviews of the heap keep their last bytes as
    private memory, with a warning. A program that ends without it ends the same way. Raises
    ``shmem.errors.Error`` when the others cannot be reached any more; the job is over all the
    same."""
    code = end()
    if code != 0:
        raise Error(_core.last_error(), code)


def shmem_init_status() -> InitStatus:
    """An ``InitStatus``; ``INITIALIZED`` between start and end."""
    return InitStatus(_c.init_status())


def shmem_set_attributes(
    my_rank: int, n_ranks: int, local_mem_size: int, ip_port: str, attributes: InitAttr
) -> int:
    """Fills ``attributes``: the rank among ``n_ranks``, bytes of heap for each, and where rank 0 hosts the
    store, ``tcp://ip:port``. Returns 0."""
    attributes.my_rank = my_rank
    attributes.n_ranks = n_ranks
    attributes.local_mem_size = local_mem_size
    attributes.ip_port = ip_port
    return 0


def _fail(call: str, text: str) -> int:
    """The code of a value that is not allowed, or its exception."""
    if _core.raises_on_error():
        raise InvalidArgument(f"{call}: {text}", _INVALID_VALUE)
    return _core.smem.keep_failure(call, _INVALID_VALUE, text)


def _value(value: int | None, vaue: int | None) -> int:
    if value is not None and vaue is None:
        return value
    if vaue is not None and value is None:
        return vaue
    raise TypeError("one of `value` and `vaue` is needed")


def shmem_set_data_op_engine_type(
    attributes: InitAttr, value: OpEngineType | int | None = None, *, vaue: int | None = None
) -> int:
    """The engines that the job prefers, an ``OpEngineType`` or several by ``|`` (``vaue`` is a misspelling
    that programs have). Returns 0, or -2 for unknown bits."""
    engines = int(_value(value, vaue))
    if engines <= 0 or engines & ~sum(OpEngineType):
        return _fail(
            "shmem_set_data_op_engine_type",
            f"data_op_engine_type is {engines}, allowed is any sum of MTE (1), SDMA (2), ROCE (4) and "
            "UDMA (8)",
        )
    attributes.option_attr.data_op_engine_type = OpEngineType(engines)
    return 0


def shmem_set_timeout(
    attributes: InitAttr, value: int | None = None, *, vaue: int | None = None
) -> int:
    """All three time-outs of ``attributes``, in milliseconds; kept in seconds, rounded up.
    Returns 0, or -2 for 0 and less."""
    milliseconds = _value(value, vaue)
    if milliseconds <= 0:
        return _fail("shmem_set_timeout", f"the time-out is {milliseconds} ms, allowed is 1 and more")
    seconds = math.ceil(milliseconds / 1000)
    options = attributes.option_attr
    options.shm_init_timeout = options.shm_create_timeout = seconds
    options.control_operation_timeout = seconds
    return 0


def register_decrypt_handler(py_decrypt_func: Callable[[str], str] | None) -> None:
    """``py_decrypt_func(cipher: str) -> str`` decrypts the password of the TLS key from now on;
    None: no function."""
    _c.register_decrypt_handler(py_decrypt_func)


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """How the store is protected: ``(False, "")`` turns TLS off, ``(True, "tlsCert: FILE; ...")``
    names certificates; without a call a secret of this user protects it. Returns 0 or a code."""
    return _c.set_conf_store_tls(enable, tls_info)


def set_conf_store_tls_key(
    tls_pk: str, tls_pk_pw: str, py_decrypt_func: Callable[[str], str] | None = None
) -> int:
    """The TLS key (PEM) and its password as text; the function decrypts the password. Returns 0 or a
    code."""
    return _c.set_conf_store_tls_key(tls_pk, tls_pk_pw, py_decrypt_func)


def set_log_level(level: int) -> int:
    """0 debug, 1 info, 2 warn, 3 error, 4 fatal. Returns 0 or a code."""
    return _c.set_log_level(level)


def set_extern_logger(func: Callable[[int, str], object] | None) -> int:
    """``func(level: int, message: str)`` gets the log instead of stderr, on any thread; None goes back.
    Returns 0 or a code."""
    return _c.set_extern_logger(func)


def shmem_global_exit(status: int) -> None:
    """Every process of the job ends with that status."""
    sys.stdout.flush()
    sys.stderr.flush()
    _c.global_exit(status)
