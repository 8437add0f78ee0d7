#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the oldest glibc and libstdc++ that the built binaries need, each binary's and then all's.
#
#   glibc_floor.sh [--build DIR]
#
#   --build DIR   the build tree (build/ unless given), or where memspan is installed
#
# The last line is `all: glibc N, libstdc++ GLIBCXX_N, CXXABI_N`.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build

fail() {
  printf 'glibc_floor: %s\n' "$*" >&2
  exit 2
}
while (($# > 0)); do
  case $1 in
    --build)
      build=${2-}
      [[ -d $build ]] || fail "--build is \"$build\", which is no folder"
      shift
      ;;
    -h | --help)
      sed -n '3,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed is --build DIR" ;;
  esac
  shift
done
# It reads every processor's files.
command -v readelf >/dev/null || fail "readelf is missing (package binutils)"

# versions FILE: the symbol versions that FILE needs of others, one a line.
versions() { readelf --wide --version-info -- "$1" | sed -n 's/^ .*  Name: \([^ ]*\)  Flags:.*/\1/p'; }
# newest PREFIX: of the versions in standard input that start with PREFIX; none when there is none.
newest() {
  local found
  found=$(sed -n "s/^$1_\([0-9][0-9.]*\)\$/\1/p" | sort -uV | tail -n 1)
  printf '%s' "${found:-none}"
}
describe() { # NAME VERSIONS
  printf '%s: glibc %s, libstdc++ GLIBCXX_%s, CXXABI_%s\n' "$1" "$(newest GLIBC <<<"$2")" \
    "$(newest GLIBCXX <<<"$2")" "$(newest CXXABI <<<"$2")"
}

all=
for file in "$build"/lib*/{,*/}libmemspan{,_tls}.so \
  "$build"/bin/{oshrun,memspan-info,memspan-perf,memspan-store,memspan-kernels,memspan-top,memspan-explain}; do
  [[ -f $file ]] || continue
  needs=$(versions "$file")
  describe "${file##*/}" "$needs"
  all+=$needs$'\n'
done
[[ -n $all ]] || fail "no binaries of memspan are in $build"
describe all "$all"
