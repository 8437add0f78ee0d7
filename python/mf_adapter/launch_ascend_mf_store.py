# SPDX-License-Identifier: Apache-2.0
"""Hosts a store at ASCEND_MF_STORE_URL until SIGINT or SIGTERM:
``python -m mf_adapter.launch_ascend_mf_store``."""

import os
import signal
import sys

from mf_adapter import create_config_store
from memspan.fabric.common import get_last_err_msg


def main() -> int:
    """The program. Its exit status; ValueError when ASCEND_MF_STORE_URL is not set."""
    url = os.environ.get("ASCEND_MF_STORE_URL")
    if not url:
        raise ValueError("ASCEND_MF_STORE_URL is not set; it says where, as tcp://ip:port")
    # Before the store's threads, so that only this one takes the signals.
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    if create_config_store(url) != 0:
        print(f"launch_ascend_mf_store: {get_last_err_msg()}", file=sys.stderr)
        return 1
    print(f"the store listens at {url}", flush=True)
    signal.sigwait(signals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
