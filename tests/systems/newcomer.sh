#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The README's two commands, literally, in a clone on an empty system. HOME is a folder of its own. Prints their times.
#
#   newcomer.sh bookworm | trixie | noble [--both]   Debian 12, Debian 13, Ubuntu 24.04: root runs the first command and, with --both,
#                                                    a user the second one
#   newcomer.sh container-root [--both]              root runs both in a container of Debian 12 (tests/support/containers/run.sh)
#   newcomer.sh container-user [--both]              uid 1000 runs both in such a container, which has the packages
#
# Before there are packages, a user without rights learns which are missing.
set -euo pipefail

# shellcheck source=tests/systems/start.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/start.sh"
# shellcheck source=tests/support/containers/run.sh
source "$root/tests/support/containers/run.sh"

fail() {
  printf 'newcomer: %s\n' "$1" >&2
  exit 1
}

container=false
users=(root newcomer) # who runs the first and the second command
case ${1-} in
  bookworm | trixie | noble) suite=$1 ;;
  container-root) suite=bookworm container=true users=(root root) ;;
  container-user) suite=bookworm container=true users=(newcomer newcomer) ;;
  *) fail 'which system? bookworm, trixie, noble, container-root or container-user' ;;
esac
system=$work/system
make_root "$system"
tree=/home/newcomer/memspan
mkdir -p -- "$system/home/newcomer" "$system/elsewhere"
git clone -q --no-hardlinks -- "$root" "$system$tree"
in_root "$system" useradd --uid 1000 --home-dir /home/newcomer newcomer

first=$(line_of_readme 'bash examples/matmul_allreduce/scripts/run.sh ')
second=$(line_of_readme 'bash scripts/test.sh')

# give USER: what is in the clone and in HOME belongs to that user.
give() { in_root "$system" chown -R "$1:$1" "$tree" /elsewhere; }

# as USER LINE: a line of the README in the clone, as somebody types it.
as() {
  local command=(env HOME=/elsewhere OMP_NUM_THREADS=1 bash -c "cd $tree && $2")
  if $container; then
    in_container "$system" "$1" "${command[@]}"
  else
    in_root "$system" runuser -u "$1" -- "${command[@]}"
  fi
}

# timed NAME USER LINE: prints what it prints, and how long it took.
timed() {
  local name=$1 began=$SECONDS
  shift
  printf '\n-- %s: %s\n' "$name" "$2"
  as "$@" 2>&1 | tee -- "$work/output" || fail "$name failed: $2"
  printf -- '-- %s: %d s\n' "$name" $((SECONDS - began))
}

install_packages() { in_root "$system" bash -c "cd $tree && bash scripts/install_deps.sh --examples --tests --python"; }

give newcomer
if as newcomer "$first" >"$work/output" 2>&1; then fail 'the first command passed without packages'; fi
grep -q '^install_deps: .*g++' "$work/output" || fail "no line names the missing packages: $(cat "$work/output")"
(($(wc -l <"$work/output") <= 2)) || fail "more than a line about missing packages: $(cat "$work/output")"

[[ ${users[0]} == root ]] || install_packages
give "${users[0]}"
timed 'first command' "${users[0]}" "$first"
grep -q 'verified.*PASS' "$work/output" || fail 'the first command did not verify its result'
! grep -q 'warning' "$work/output" || fail 'the first command printed a warning'

[[ ${2-} == --both ]] || exit 0
[[ ${users[1]} == root ]] || install_packages
give "${users[1]}"
timed 'second command' "${users[1]}" "$second"
tail -n 1 -- "$work/output" | grep -Eq '^[0-9]+ passed, 0 failed, [0-9]+ skipped$' || fail 'the last line is no summary'
used=$(du -sm -- "$system$tree" | cut -f1)
printf -- '-- %d MB of disk\n' "$used"
((used <= 2000)) || fail "it took $used MB of disk, allowed are 2000"
