#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the oldest glibc and libstdc++ that the built binaries need, each binary's and then all's.
#
#   glibc_floor.sh [--build DIR]
#
#   --build DIR   the build tree (build/ unless given), where memspan is installed, or the
#                 folder memspan/ of a wheel
#
# The last line is `all: glibc N, libstdc++ GLIBCXX_N, CXXABI_N`. It fails if N is more than 2.34 and the
# binaries were built on a glibc up to 2.36, and names the symbols. Headers of later ones use newer symbols.
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
      sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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

readonly most=2.34
is_newer() { [[ $1 != "$2" && $(printf '%s\n' "$1" "$2" | sort -V | tail -n 1) == "$1" ]]; }

all='' culprits=''
for file in "$build"/lib*/{,*/}libmemspan{.so.0,_tls.so} "$build"/_core*.so \
  "$build"/bin/{oshrun,memspan-info,memspan-perf,memspan-store,memspan-kernels,memspan-top,memspan-explain}; do
  [[ -f $file ]] || continue
  needs=$(versions "$file")
  describe "${file##*/}" "$needs"
  all+=$needs$'\n'
  if is_newer "$(newest GLIBC <<<"$needs")" "$most"; then culprits+=" $file"; fi
done
[[ -n $all ]] || fail "no binaries of memspan are in $build"
describe all "$all"
system=$(getconf GNU_LIBC_VERSION)
if [[ -n $culprits ]] && ! is_newer "${system#* }" 2.36; then
  printf 'glibc_floor: glibc %s is the most that binaries may need; they use:\n' "$most" >&2
  # shellcheck disable=SC2086 # because no path of a build has blanks
  readelf --wide --dyn-syms -- $culprits | sed -n 's/.* \([^ ]*@GLIBC_[0-9.]*\).*/\1/p' | sort -u |
    while read -r symbol; do
      if is_newer "${symbol##*_}" "$most"; then printf '  %s\n' "$symbol" >&2; fi
    done
  exit 1
fi
