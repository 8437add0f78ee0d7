#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds memspan in build/, installs it into install/ and writes install/set_env.sh.
#
#   build.sh [-uttests] [-examples] [-python_extension] [-debug] [-clean]
#
#   -uttests    also the tests: then `ctest --test-dir build` and scripts/run.sh work
#   -examples   also the examples
#   -python_extension   also the Python wheel, into install/wheel
#   -debug      without optimisation, with debug information
#   -clean      remove build/ and install/ first
#
# Options that concern Ascend hardware or packages only are accepted with a notice.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
prefix=$root/install

fail() {
  printf 'build: %s\n' "$*" >&2
  exit 1
}
notice() { printf 'build: %s has no meaning here and is ignored\n' "$1"; }

tests=OFF
examples=OFF
python=false
type=Release
clean=false
while (($# > 0)); do
  case $1 in
    -uttests | --uttests) tests=ON ;;
    -examples | --examples) examples=ON ;;
    -debug | --debug) type=Debug ;;
    -clean | --clean) clean=true ;;
    -python_extension | --python_extension)
      python=true
      ;;
    -rdma_backend | -soc_type)
      (($# > 1)) || fail "$1 needs a value"
      notice "$1 $2"
      shift
      ;;
    -cann | -enable_rdma | -enable_simt | -enable_relay | -enable_ascendc_dump | -python_example | \
      -gendoc | -onlygendoc | -package | -full | -use_cxx11_abi0 | -use_cxx11_abi1 | -mssanitizer)
      notice "$1"
      ;;
    -h | -help | --help)
      sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; see build.sh -help" ;;
  esac
  shift
done

bash "$root/scripts/install_deps.sh"
if $clean; then rm -rf -- "$build" "$prefix"; fi

# A build tree that is there keeps what it already builds (tests, examples) and how, so that asking
# for the examples does not take the tests away; -clean starts anew.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true; }
if [[ $(cached MEMSPAN_BUILD_TESTS) == ON ]]; then tests=ON; fi
if [[ $(cached MEMSPAN_BUILD_EXAMPLES) == ON ]]; then examples=ON; fi
if [[ $type == Release && $(cached CMAKE_BUILD_TYPE) == RelWithDebInfo ]]; then type=RelWithDebInfo; fi

options=(
  -DCMAKE_BUILD_TYPE="$type"
  -DCMAKE_INSTALL_PREFIX="$prefix"
  -DCMAKE_INSTALL_LIBDIR=lib
  -DMEMSPAN_BUILD_TESTS="$tests"
  -DMEMSPAN_BUILD_EXAMPLES="$examples"
)
if [[ ! -f $build/CMakeCache.txt ]]; then options+=(-G Ninja -DMEMSPAN_BUILD_BENCHMARKS=OFF); fi
if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$root" -B "$build" "${options[@]}" >/dev/null || fail "cmake could not configure $build"
cmake --build "$build" --parallel "$(nproc)"
cmake --install "$build" >/dev/null

if $python; then bash "$root/scripts/build_wheel.sh" --out "$prefix/wheel"; fi

home=${prefix//\'/\'\\\'\'} # inside single quotes
home=${home//[\\&|]/\\&}    # inside sed's replacement
sed -e "s|@HOME@|$home|" -e "s|@LIBDIR@|lib|g" "$root/packaging/set_env.sh.in" >"$prefix/set_env.sh"
printf 'build: installed into %s; next: source "%s"\n' "$prefix" "$prefix/set_env.sh"
