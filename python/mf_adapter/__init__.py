# SPDX-License-Identifier: Apache-2.0
"""MemFabric's transfers between named endpoints, under the adapter's name."""

from memspan import __version__
from memspan.fabric import engine as _engine
from memspan.fabric.common import set_conf_store_tls, set_log_level
from memspan.fabric.common import create_config_store as _create_config_store
from memspan.fabric.engine import *  # noqa: F403

__all__ = ["create_config_store", "set_conf_store_tls", "set_log_level"]
__all__ += _engine.__all__


def create_config_store(store_url: str) -> int:
    """Hosts a store at ``tcp://ip:port`` until the process ends. ASCEND_MF_LOG_LEVEL, if set, is
    the log's level. Returns 0 or a code."""
    _engine.apply_log_level()
    return _create_config_store(store_url)
