#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first tier of the tests on another system, from a clone of the last commit.
#
#   first_tier.sh container-root | container-user | SUITE
#
#   container-root   Debian 12 in a container with the rights that Docker gives, 64 MiB of /dev/shm
#   container-user   the same, as uid 1000
#   SUITE            an empty system of that name: trixie, Debian 13; noble, Ubuntu 24.04
#
# What was compiled before is taken from ccache, if this machine has it.
set -euo pipefail

# shellcheck source=tests/systems/start.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/start.sh"

case ${1-} in
  container-root | container-user) ;;
  [a-z]*) suite=$1 ;;
  *) echo 'first_tier: which system? container-root, container-user or a suite (trixie, noble)' >&2 && exit 2 ;;
esac

system=$work/system
make_root "$system"
git clone -q --no-hardlinks -- "$root" "$system/memspan"
# That of another compiler would only cost the headers that are compiled once.
cache=
[[ $1 != container-* ]] || cache=$(ccache --get-config cache_dir 2>/dev/null || true)
settings=()
packages=$(bash "$root/scripts/install_deps.sh" --examples --tests --python --list)
if [[ -d $cache ]]; then
  mkdir -- "$system/ccache"
  settings=(CCACHE_DIR=/ccache)
  packages+=" ccache"
fi
# Packages come before, since a container has no right to install them as a user.
in_root "$system" bash -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@" >/dev/null' bash $packages

line='cd /memspan && exec bash scripts/test.sh'
case $1 in
  container-*)
    user=0
    if [[ $1 == container-user ]]; then
      user=1000
      settings+=(CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp/ccache)
      chown -R 1000:1000 -- "$system/memspan"
      install -d -o 1000 -g 1000 -- "$system/home/user"
    fi
    # shellcheck source=tests/support/containers/run.sh
    source "$root/tests/support/containers/run.sh"
    in_container "$system" "$user" "$cache" env HOME="$([[ $user == 0 ]] && echo /root || echo /home/user)" "${settings[@]}" bash -c "$line"
    ;;
  *)
    in_root "$system" env "${settings[@]}" bash -c "$line"
    ;;
esac
