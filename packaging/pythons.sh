#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# pythons.sh MINOR...: of python3.MINOR, those that are here, of PATH or of pyenv, as lines `MINOR PATH`.
set -euo pipefail

for minor in "$@"; do
  for candidate in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
    if path=$("$candidate" -c 'import sys; print(sys.executable)' 2>/dev/null); then
      printf '%s %s\n' "$minor" "$path"
      break
    fi
  done
done
