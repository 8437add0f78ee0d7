#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The tests of examples/kubernetes, in the environment of its linters.
set -euo pipefail
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/support/needs.sh
source "$MEMSPAN_SOURCE/tests/support/needs.sh"
needs pypi
python=$(bash "$MEMSPAN_SOURCE/scripts/python_env.sh" --lint "$MEMSPAN_BUILD/lint-env")
cd -- "$here"
exec "$python" -m unittest -v test_kubernetes
