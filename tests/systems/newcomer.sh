#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The README's two commands, literally, in an empty system: a user without rights learns which packages are missing, root
# runs the first command and, with --both, the user the second one. HOME is a folder of its own. Prints their times.
#
#   newcomer.sh bookworm | trixie | noble [--both]    Debian 12, Debian 13, Ubuntu 24.04
set -euo pipefail

# shellcheck source=tests/systems/start.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/start.sh"

fail() {
  printf 'newcomer: %s\n' "$1" >&2
  exit 1
}

case ${1-} in
  bookworm | trixie | noble) suite=$1 ;;
  *) fail 'which system? bookworm, trixie or noble' ;;
esac
system=$work/system
make_root "$system"
tree=/home/newcomer/memspan
mkdir -p -- "$system/home/newcomer" "$system/elsewhere"
git clone -q --no-hardlinks -- "$root" "$system$tree"
in_root "$system" useradd --home-dir /home/newcomer newcomer
in_root "$system" chown -R newcomer /home/newcomer /elsewhere

first=$(line_of_readme 'bash examples/matmul_allreduce/scripts/run.sh ')
second=$(line_of_readme 'bash scripts/test.sh')

# as USER LINE: a line of the README in the clone, as somebody types it.
as() { in_root "$system" runuser -u "$1" -- env HOME=/elsewhere OMP_NUM_THREADS=1 bash -c "cd $tree && $2"; }

# timed NAME USER LINE: prints each line with its second, and fails if nothing is printed for too long.
timed() {
  local name=$1 began=$SECONDS
  shift
  printf '\n-- %s: %s\n' "$name" "$2"
  as "$@" 2>&1 | tee -- "$work/output" || fail "$name failed: $2"
  printf -- '-- %s: %d s\n' "$name" $((SECONDS - began))
}

if as newcomer "$first" >"$work/output" 2>&1; then fail 'the first command passed without packages'; fi
grep -q '^install_deps: .*g++' "$work/output" || fail "no line names the missing packages: $(cat "$work/output")"
(($(wc -l <"$work/output") <= 2)) || fail "more than a line about missing packages: $(cat "$work/output")"

timed 'first command' root "$first"
grep -q 'verified.*PASS' "$work/output" || fail 'the first command did not verify its result'
! grep -q 'warning' "$work/output" || fail 'the first command printed a warning'

[[ ${2-} == --both ]] || exit 0
# What the tests need, by root; then all of it is done by the user.
in_root "$system" bash -c "cd $tree && bash scripts/install_deps.sh --examples --tests --python"
in_root "$system" chown -R newcomer "$tree"
timed 'second command' newcomer "$second"
tail -n 1 -- "$work/output" | grep -Eq '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' || fail 'the last line is no summary'
used=$(du -sm -- "$system$tree" | cut -f1)
printf -- '-- %d MB of disk\n' "$used"
((used <= 2000)) || fail "it took $used MB of disk, allowed are 2000"
