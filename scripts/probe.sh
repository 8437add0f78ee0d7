#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Reports what this machine allows tests to do: `probe.sh`, or `probe.sh --json`, or `probe.sh --lacks [NAME...]`.
exec python3 "$(dirname -- "${BASH_SOURCE[0]}")/../tests/support/machine.py" "$@"
