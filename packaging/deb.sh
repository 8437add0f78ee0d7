#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the Debian packages (CPack; docs/packages.md) for the Debian that this runs on.
#
#   deb.sh [--out DIR] [--build DIR] [--without-python]
#
#   --out DIR          where they go (dist)
#   --build DIR        the build tree (build/deb); it links the objects of build/ where those fit
#   --without-python   not python3-memspan, whose extension takes a minute to compile
#
# With SOURCE_DATE_EPOCH set, the same sources give the same bytes; else the time is that of the last commit.
# The last lines are their paths.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
out=$root/dist
build=$root/build/deb
python=ON

fail() {
  printf 'deb: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --out | --build)
      (($# > 1)) || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --without-python) python=OFF ;;
    --help | -h)
      sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --out, --build and --without-python" ;;
  esac
  shift
done
needs=(--package)
[[ $python == OFF ]] || needs+=(--python)
bash "$root/scripts/install_deps.sh" "${needs[@]}"
command -v dpkg-shlibdeps >/dev/null || fail 'dpkg-shlibdeps is missing (scripts/install_deps.sh --package)'
SOURCE_DATE_EPOCH=$(bash "$root/packaging/source_date.sh")
export SOURCE_DATE_EPOCH

options=()
if [[ $python == ON ]]; then
  # The Python of the distribution, whichever stands first in PATH.
  [[ -x /usr/bin/python3 ]] || fail 'there is no /usr/bin/python3; --without-python leaves out what needs it'
  interpreter=$(bash "$root/scripts/python_env.sh" --python /usr/bin/python3 "$build-python")
  options+=(-DPython3_EXECUTABLE="$interpreter")
fi
# As what build/ has, so that its objects are taken (cmake/MemspanRooms.cmake), and the rest from the compiler's cache.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$root/build/CMakeCache.txt" 2>/dev/null || true; }
type=$(cached CMAKE_BUILD_TYPE)
case $type in Release | RelWithDebInfo) ;; *) type=Release ;; esac
developer=$(cached MEMSPAN_DEVELOPER)
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
library=lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
cmake -S "$root" -B "$build" -G Ninja -DMEMSPAN_DEB=ON -DCMAKE_BUILD_TYPE="$type" -DMEMSPAN_DEVELOPER="${developer:-OFF}" \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="$library" -DMEMSPAN_INSTALL_MODULEDIR="$library/memspan" \
  -DMEMSPAN_BUILD_PYTHON="$python" -DMEMSPAN_BUILD_TESTS=OFF -DMEMSPAN_BUILD_EXAMPLES=OFF -DMEMSPAN_BUILD_BENCHMARKS=OFF \
  "${options[@]}" >&2 || fail "cmake could not configure $build"
cmake --build "$build" --parallel "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" >&2
if [[ $python == ON ]]; then
  # What importlib.metadata reads: the version, and who calls memspan when it is there.
  rm -rf -- "$build/metadata"
  mkdir -- "$build/metadata"
  (cd -- "$root" && "$interpreter" - "$build/metadata" <<<'
import sys
from scikit_build_core.build import prepare_metadata_for_build_wheel
prepare_metadata_for_build_wheel(sys.argv[1])') >&2
fi

rm -rf -- "$build/packages"
(cd -- "$build" && umask 022 && cpack -B "$build/packages") >"$build/cpack.log" 2>&1 || {
  tail -n 20 "$build/cpack.log" >&2
  fail 'cpack failed'
}
mkdir -p -- "$out"
for package in "$build"/packages/*.deb; do
  name=${package##*/}
  rm -f -- "$out/${name%%_*}"_*.deb
  mv -- "$package" "$out/"
  printf '%s\n' "$out/$name"
done
