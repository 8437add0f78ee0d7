#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fails with a message if the source tree, into which everything is built, cannot be written.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
for folder in "$root/build" "$root/install" "$root"; do
  [[ -d $folder ]] || continue
  [[ -w $folder ]] || {
    printf '%s: cannot write into %s; what is built lies there: copy the source tree to where you may write\n' \
      "${1:-memspan}" "$folder" >&2
    exit 1
  }
done
