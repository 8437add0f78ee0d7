#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the tests of a package's life share: one empty system, into which it is installed, where it is used, upgraded and removed.
# To be sourced by a script under `set -e`.

work=$(mktemp -d -p /var/tmp)
trap 'rm -rf -- "$work"' EXIT
system=$work/system
life_support=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/readme.sh
source "$life_support/readme.sh"
# shellcheck source=tests/support/empty_system.sh
source "$life_support/empty_system.sh"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# there COMMAND...: in the system; what the command printed is in $work/out, and shown only when it fails.
there() { in_root "$system" "$@" >"$work/out" 2>&1 || fail "$* gave $?: $(tail -n 20 "$work/out")"; }

# printed WHAT LINE...: the last command printed these lines and nothing else.
printed() {
  local what=$1
  shift
  cmp -s "$work/out" <(printf '%s\n' "$@") || fail "$what printed: $(cat "$work/out")"
}
# ring_printed WHAT: it ran the README's ring with 4 PEs, and sorted the lines.
ring_printed() { printed "$1" "PE 0 of 4 got 103" "PE 1 of 4 got 100" "PE 2 of 4 got 101" "PE 3 of 4 got 102"; }

# files_there: what an installation may leave. apt's own caches and logs are no part of it.
files_there() {
  (cd -- "$system" && find . -xdev \( -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path ./proc -o -path ./dev \
    -o -path ./sys -o -path ./tmp -o -path ./root -o -path ./packages -o -path ./var/lib/dpkg -o -path ./run \) -prune -o -print) | sort
}
