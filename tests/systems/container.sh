#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first tier of the tests in a container of Debian 12 with the rights that Docker gives and 64 MiB of /dev/shm, from a clone
# of the last commit.
#
#   container.sh container-root | container-user    the second one as uid 1000
#
# What was compiled before is taken from ccache, if this machine has it.
set -euo pipefail

# shellcheck source=tests/systems/start.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/start.sh"
# shellcheck source=tests/support/containers/run.sh
source "$root/tests/support/containers/run.sh"

case ${1-} in
  container-root) user=0 home=/root ;;
  container-user) user=1000 home=/home/user ;;
  *) echo 'container: as whom? container-root or container-user' >&2 && exit 2 ;;
esac

suite=bookworm
system=$work/system
make_root "$system"
git clone -q --no-hardlinks -- "$root" "$system/memspan"
cache=$(ccache --get-config cache_dir 2>/dev/null || true)
settings=("HOME=$home")
packages=$(bash "$root/scripts/install_deps.sh" --examples --tests --python --list)
if [[ ! -d $cache ]]; then
  cache=
else
  mkdir -- "$system/ccache"
  settings+=(CCACHE_DIR=/ccache)
  packages+=" ccache"
fi
# Packages come before, since a container has no right to install them as a user.
in_root "$system" bash -c 'apt-get update -qq && apt-get install -qq -y --no-install-recommends "$@" >/dev/null' bash $packages
if [[ $user != 0 ]]; then
  settings+=(CCACHE_READONLY=1 CCACHE_TEMPDIR=/tmp/ccache)
  chown -R "$user:$user" -- "$system/memspan"
  install -d -o "$user" -g "$user" -- "$system$home"
fi
in_container "$system" "$user" "$cache" env "${settings[@]}" bash -c 'cd /memspan && exec bash scripts/test.sh'
