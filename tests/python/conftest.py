# SPDX-License-Identifier: Apache-2.0
"""Where the tests' own modules are, and the marks of these tests."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))

from jobs import hosts  # noqa: E402


def pytest_configure(config):
    # A shell starts what runs in the background with Ctrl-C ignored, and the tests' processes would inherit that.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line(
        "markers",
        "one_host(reason, instead): needs processes of one host; on simulated hosts (jobs/hosts.py) "
        "instead() runs, which checks what is refused, and why",
    )


def pytest_collection_modifyitems(items):
    for item in items:
        mark = item.get_closest_marker("one_host")
        if mark is not None and hosts.ARE_MANY:
            instead = mark.kwargs["instead"]
            item.obj = lambda *_, instead=instead, **__: instead()
