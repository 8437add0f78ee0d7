#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Empty systems to install into, of this machine's suite or $suite (Debian's, or noble of Ubuntu): for who has set `work`, a folder
# of its own. To be sourced. Needs root, debootstrap and the distribution's servers. The system that debootstrap made is kept as $MEMSPAN_SYSTEMS/SUITE.tar (build/systems).
# shellcheck disable=SC2154

suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
systems=${MEMSPAN_SYSTEMS:-$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/build/systems}

# Ubuntu's keys and the script that makes it are packages of Debian 13, not of 12.
bootstrap() {
  if [[ $suite != noble ]]; then
    debootstrap --variant=minbase "$suite" "$work/base"
    return
  fi
  (suite=trixie && make_root "$work/trixie") && mkdir -- "$work/base" &&
    in_root "$work/trixie" sh -ec 'apt-get update -qq; apt-get install -qq -y --no-install-recommends debootstrap ubuntu-archive-keyring' &&
    MEMSPAN_SYSTEM_BIND=$work/base:/base in_root "$work/trixie" debootstrap --variant=minbase --components=main,universe \
      noble /base http://archive.ubuntu.com/ubuntu
}

# make_root FOLDER: a system that has nothing but Essential packages and apt.
make_root() {
  if [[ ! -f $systems/$suite.tar ]]; then
    mkdir -p -- "$systems"
    bootstrap >"$work/debootstrap.log" 2>&1 || {
      tail -n 5 "$work/debootstrap.log" >&2
      return 1
    }
    tar -C "$work/base" --exclude='./proc/*' --exclude='./sys/*' --exclude='./var/cache/apt/archives/*.deb' -cf "$systems/$suite.tar.new" .
    mv -- "$systems/$suite.tar.new" "$systems/$suite.tar"
    rm -rf -- "$work/base"
  fi
  mkdir -p -- "$1"
  tar -C "$1" -xpf "$systems/$suite.tar"
  # The same servers as here, with the same certificates, and no daemon that a package would like to start.
  cp -- /etc/resolv.conf "$1/etc/resolv.conf"
  if [[ -f /etc/ssl/certs/ca-certificates.crt ]]; then
    cp -- /etc/ssl/certs/ca-certificates.crt "$1/etc/certificates-of-host.crt"
    printf '[global]\ncert = /etc/certificates-of-host.crt\n' >"$1/etc/pip.conf"
  fi
  printf '#!/bin/sh\nexit 101\n' >"$1/usr/sbin/policy-rc.d"
  chmod 755 "$1/usr/sbin/policy-rc.d"
}

# in_root FOLDER COMMAND...: as root, with processes and mounts of its own that end with it. MEMSPAN_SYSTEM_BIND=FROM:TO
# lets it see one folder more.
in_root() {
  local folder=$1
  shift
  # shellcheck disable=SC2016 # expanded inside
  MEMSPAN_SYSTEM_BIND=${MEMSPAN_SYSTEM_BIND-} unshare --mount --pid --fork --kill-child --propagation private sh -ec '
    folder=$1; shift
    mount -t proc proc "$folder/proc"
    mount -t tmpfs -o mode=755 dev "$folder/dev"
    mkdir -m 1777 "$folder/dev/shm"; mount -t tmpfs -o mode=1777 shm "$folder/dev/shm"
    for each in null zero full random urandom; do : >"$folder/dev/$each"; mount --bind "/dev/$each" "$folder/dev/$each"; done
    ln -s /proc/self/fd "$folder/dev/fd"
    [ -z "$MEMSPAN_SYSTEM_BIND" ] || { mkdir -p "$folder${MEMSPAN_SYSTEM_BIND#*:}"; mount --bind "${MEMSPAN_SYSTEM_BIND%%:*}" "$folder${MEMSPAN_SYSTEM_BIND#*:}"; }
    exec chroot "$folder" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
      LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' sh "$folder" "$@" </dev/null
}
