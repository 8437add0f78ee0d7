# SPDX-License-Identifier: Apache-2.0
"""MemFabric's common functions.

Functions that return int give 0 or a code below 0; ``get_last_err_msg()`` then says why, and after
``memspan.fabric.common.raise_on_error(True)`` they raise instead.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from memspan import _core, get_include_path, get_lib_path
from memspan._core import raise_on_error

_c = _core.smem

__all__ = [
    "TlsConfig",
    "create_config_store",
    "destroy_config_store",
    "get_and_clear_last_err_msg",
    "get_error_string",
    "get_include_path",
    "get_last_err_code",
    "get_last_err_msg",
    "get_lib_path",
    "initialize",
    "raise_on_error",
    "set_conf_store_tls",
    "set_conf_store_tls_key",
    "set_extern_logger",
    "set_log_level",
    "uninitialize",
]


@dataclasses.dataclass
class TlsConfig:
    """Certificates by file; without any a secret protects what is connected."""

    enable: bool = False
    ca_path: str = ""
    crl_path: str = ""
    cert_path: str = ""
    key_path: str = ""
    key_pass_path: str = ""
    package_path: str = ""
    decrypter_lib_path: str = ""


def initialize(flags: int = 0) -> int:
    """For programs that begin with it; nothing needs it. Returns 0 or a code."""
    return _c.init(flags)


def uninitialize() -> None:
    """For programs that end with it; nothing needs it."""
    _c.uninit()


def create_config_store(store_url: str) -> int:
    """Hosts a store at ``tcp://ip:port`` until the process ends. Returns 0 or a code."""
    return _c.create_config_store(store_url)


def destroy_config_store(store_url: str) -> int:
    """Ends a store that this process hosts. Returns 0 or a code."""
    return _c.destroy_config_store(store_url)


def set_log_level(level: int) -> int:
    """0 debug, 1 info, 2 warn, 3 error, 4 fatal. Returns 0 or a code."""
    return _c.set_log_level(level)


def set_extern_logger(log_fn: Callable[[int, str], object] | None) -> int:
    """``log_fn(level: int, message: str)`` gets the log instead of stderr. Returns 0; TypeError when it
    cannot be called, RuntimeError when it cannot be set. None goes back to stderr, and returns
    -2000."""
    if log_fn is not None and not callable(log_fn):
        raise TypeError(f"log_fn is a {type(log_fn).__name__}, which cannot be called")
    code = _c.set_extern_logger(log_fn)
    if code != 0 and log_fn is not None:
        raise RuntimeError(_c.get_last_err_msg())
    return code


def get_last_err_msg() -> str:
    """Why this thread's last call that failed did so; "" before the first."""
    return _c.get_last_err_msg()


def get_and_clear_last_err_msg() -> str:
    """Why this thread's last call that failed did so, and forgets it."""
    return _c.get_and_clear_last_err_msg()


def get_last_err_code() -> int:
    """The code of this thread's last call that failed; 0 before the first."""
    return _c.get_last_err_code()


def get_error_string(code: int) -> str:
    """A short description of a code."""
    return _c.get_error_string(code)


def set_conf_store_tls(enable: bool, tls_info: str) -> int:
    """How stores are protected from now on: ``(False, "")`` turns TLS off, ``(True, "tlsCert: FILE;
    ...")`` names certificates; without a call a secret of this user does. Returns 0 or a code."""
    return _c.set_conf_store_tls(enable, tls_info)


def set_conf_store_tls_key(
    tls_pk: str, tls_pk_pw: str, py_decrypt_func: Callable[[str], str] | None = None
) -> int:
    """The TLS key (PEM) and its password as text; ``py_decrypt_func(str) -> str`` decrypts the
    password. Returns 0 or a code."""
    return _c.set_config_store_tls_key(tls_pk, tls_pk_pw, py_decrypt_func)
