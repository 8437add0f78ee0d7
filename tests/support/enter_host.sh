#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# enter_host.sh host-1 COMMAND...: on that host of the test session (tests/hosts/on_hosts.py), as the remote
# shell of oshrun.
holder=$(printf '%s' "$MEMSPAN_TEST_HOLDERS" | cut -d: -f $((${1#host-} + 1)))
shift
exec nsenter --mount --net --uts --ipc --target "$holder" "$@"
