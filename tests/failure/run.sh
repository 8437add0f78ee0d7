#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows the promises of docs/reliability.md, row by row.
#
#   run.sh [--long | --quick] [--rounds N] [--soak S] [--seed N] [--build DIR] [--out FILE] [row...]
#
# Rows are numbers of the table there; all when none is named. A row is 50 rounds (--quick 10, --long
# 1,000), row 24 a soak of 20 s (5, 300; 300 too when it is named). Writes a line of JSON a row to FILE
# (DIR/reliability.jsonl) and a readable one here, where the seed stands too: the same seed makes the
# same choices again. Fails when a row fails.
#
# Needs a build with tests; build/ when none is given. As root the rows run in a mount namespace
# with a /dev/shm and runtime folders of their own, so that other programs' files are not counted.
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)

build=$root/build
arguments=()
while (($# > 0)); do
  case $1 in
    --build)
      (($# > 1)) || { echo 'run: --build needs a folder' >&2; exit 2; }
      build=$2
      shift
      ;;
    --build=*) build=${1#*=} ;;
    *) arguments+=("$1") ;;
  esac
  shift
done
[[ -d $build ]] || { printf 'run: there is no build folder "%s"\n' "$build" >&2; exit 2; }
build=$(cd -- "$build" && pwd)
for program in bin/oshrun tests/failure_victim tests/failure_blocked; do
  [[ -x $build/$program ]] || { printf 'run: "%s" has no %s; build the tests first\n' "$build" "$program" >&2; exit 2; }
done

export MEMSPAN_OSHRUN=$build/bin/oshrun MEMSPAN_VICTIM=$build/tests/failure_victim
export MEMSPAN_UNITTEST=$build/bin/shmem_unittest PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here:$here/../support
command=(python3 -m rows --build "$build" ${arguments[@]+"${arguments[@]}"})

own_places='
set -e
mkdir -p -m 700 "$1"
mount -t tmpfs -o mode=1777 none /dev/shm
mount -t tmpfs -o mode=700 none "$1"
shift
exec "$@"'
if [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null; then
  exec unshare -m --propagation private sh -c "$own_places" sh "/tmp/memspan-$(id -u)" "${command[@]}"
fi
exec "${command[@]}"
