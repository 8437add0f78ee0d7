#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of examples/kubernetes, in the environment of its linters.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
if ! python=$(bash "$MEMSPAN_SOURCE/scripts/python_env.sh" --lint "$MEMSPAN_BUILD/lint-env"); then
  echo 'skipped: the linters are not here and could not be installed from PyPI'
  exit 77
fi
cd -- "$here"
exec "$python" -m unittest -v test_kubernetes
