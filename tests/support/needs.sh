# SPDX-License-Identifier: Apache-2.0
# What a test in shell needs of the machine, by the names of machine.py. To be sourced.
# shellcheck shell=bash

# needs NAME...: ends the script with exit code 77, which ctest counts as skipped, if the machine lacks one.
needs() {
  local probe name
  probe=$(dirname -- "${BASH_SOURCE[0]}")/../../scripts/probe.sh
  for name in "$@"; do
    if [[ -n ${MEMSPAN_TEST_LACKS+set} ]]; then
      [[ " $MEMSPAN_TEST_LACKS " == *" $name "* ]] || continue
    else
      [[ -n $(bash "$probe" --lacks "$name") ]] || continue
    fi
    echo "needs=$name"
    exit 77
  done
}
