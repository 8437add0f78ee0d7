#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's Pythons for aarch64, each in an environment of its own, where it runs under QEMU's user mode as if it were this
# machine's. Sourced. Needs root, debootstrap, qemu-aarch64 (scripts/install_deps.sh --cross) and the distribution's servers.

# make_foreign_python "SUITE..." FOLDER PACKAGE...: FOLDER/bin/python, of the first of these Debians and with the libraries
# of the last one, these packages and what they need, and the programs of memspan's wheel.
make_foreign_python() {
  local suites=$1 folder=$2 system=$2/system suite deb name minor minor_of_glibc
  shift 2
  rm -rf -- "$folder"
  mkdir -p -- "$folder/bin"
  for suite in $suites; do
    debootstrap --download-only --arch=arm64 --variant=minbase --include=python3 "$suite" "$folder/$suite" >"$folder/log" 2>&1 || {
      tail -n 5 "$folder/log" >&2
      return 1
    }
    # What else a system has is not needed, nor what the packages' scripts would do.
    for deb in "$folder/$suite"/var/cache/apt/archives/{lib,python3,zlib1g}*.deb; do dpkg-deb -x "$deb" "$system" || return 1; done
    [[ -n ${minor-} ]] || minor=$(readlink "$system/usr/bin/python3" | sed 's/^python3\.//')
    rm -rf -- "${folder:?}/$suite"
  done
  # Where newer Debians' base-files has a link.
  [[ -e $system/lib ]] || ln -s usr/lib "$system/lib"
  # Who starts it takes it for a program of this machine, Python itself, too: sys.executable is this file.
  foreign_program "$system" "$folder/bin/python" "$system/usr/bin/python3.$minor"
  printf 'home = %s\ninclude-system-site-packages = false\n' "$system/usr/bin" >"$folder/pyvenv.cfg"
  local packages=$folder/lib/python3.$minor/site-packages python
  # pip takes a platform's name as it is, and wheels have that of the oldest glibc they run with.
  local platforms=(--platform manylinux2014_aarch64)
  for minor_of_glibc in {17..36}; do platforms+=(--platform "manylinux_2_${minor_of_glibc}_aarch64"); done
  # pip asks the Python that it runs in what else a package of this version needs.
  python=$(bash "$(dirname -- "${BASH_SOURCE[0]}")/../../packaging/pythons.sh" "$minor" | cut -d ' ' -f 2-)
  "${python:-python3}" -m pip install -q --disable-pip-version-check --root-user-action ignore --target "$packages" --only-binary=:all: \
    --implementation cp --python-version "3.$minor" "${platforms[@]}" "$@" || return 1
  # The programs of the wheel stay where it put them; their libraries are found from there.
  for name in "$packages"/memspan/bin/*; do
    mv -- "$name" "$name.aarch64"
    foreign_program "$system" "$name" "$name.aarch64"
    ln -s -- "$name" "$folder/bin/${name##*/}"
  done
}

# foreign_program SYSTEM FILE PROGRAM: FILE runs PROGRAM with the libraries of SYSTEM.
foreign_program() {
  printf '#!/bin/sh\nexec qemu-aarch64 -L %q -0 %q %q "$@"\n' "$1" "$2" "$3" >"$2"
  chmod 755 "$2"
}
