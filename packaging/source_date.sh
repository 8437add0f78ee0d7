#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the time that packages carry, in seconds: $SOURCE_DATE_EPOCH, else that of the last commit; in sources
# without git, that of the file VERSION.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
if [[ -n ${SOURCE_DATE_EPOCH-} ]]; then
  [[ $SOURCE_DATE_EPOCH =~ ^[0-9]+$ ]] || {
    printf 'SOURCE_DATE_EPOCH is "%s", a number of seconds is allowed\n' "$SOURCE_DATE_EPOCH" >&2
    exit 1
  }
  printf '%s\n' "$SOURCE_DATE_EPOCH"
elif ! git -C "$root" log -1 --format=%ct 2>/dev/null; then
  stat -c %Y -- "$root/VERSION"
fi
