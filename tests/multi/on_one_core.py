#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""on_one_core.py COMMAND...: runs it where it and its children may use one core only."""

import os
import sys

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.execvp(sys.argv[1], sys.argv[1:])
