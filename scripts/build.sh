#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds memspan in build/, installs it into install/ and writes install/set_env.sh.
#
#   build.sh [-uttests] [-examples] [-python_extension] [-package] [-debug] [-clean] [-only TARGETS]
#
#   -uttests    also the tests: then `ctest --test-dir build` and scripts/run.sh work
#   -examples   also the examples
#   -python_extension   also the Python wheel, into install/wheel
#   -package    also the .run packages, into dist/, one with the wheel (docs/packages.md)
#   -debug      without optimisation, with debug information
#   -clean      remove build/ and install/ first
#   -only       build only these targets, with commas between them, and install nothing
#
# With MEMSPAN_DEPS=have it does not look for packages (scripts/install_deps.sh).
# Options that concern Ascend hardware only are accepted with a notice.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
prefix=$root/install

# shellcheck source=scripts/support/progress.sh
source "$root/scripts/support/progress.sh"

fail() {
  printf 'build: %s\n' "$*" >&2
  exit 1
}
notice() { printf 'build: %s has no meaning here and is ignored\n' "$1"; }

tests=OFF
examples=OFF
python=false
package=false
type=Release
clean=false
only=()
while (($# > 0)); do
  case $1 in
    -uttests | --uttests) tests=ON ;;
    -examples | --examples) examples=ON ;;
    -debug | --debug) type=Debug ;;
    -clean | --clean) clean=true ;;
    -python_extension | --python_extension) python=true ;;
    -package | --package) package=true ;;
    -only)
      (($# > 1)) || fail "$1 needs a value"
      IFS=, read -r -a only <<<"$2"
      shift
      ;;
    -rdma_backend | -soc_type)
      (($# > 1)) || fail "$1 needs a value"
      notice "$1 $2"
      shift
      ;;
    -cann | -enable_rdma | -enable_simt | -enable_relay | -enable_ascendc_dump | -python_example | \
      -gendoc | -onlygendoc | -full | -use_cxx11_abi0 | -use_cxx11_abi1 | -mssanitizer)
      notice "$1"
      ;;
    -h | -help | --help)
      sed -n '3,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; see build.sh -help" ;;
  esac
  shift
done

bash "$root/scripts/need_writable.sh" build
if $clean; then rm -rf -- "$build" "$prefix"; fi

# A build tree that is there keeps what it already builds (tests, examples) and how, so that asking
# for the examples does not take the tests away; -clean starts anew.
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt" 2>/dev/null || true; }
if [[ $(cached MEMSPAN_BUILD_TESTS) == ON ]]; then tests=ON; fi
if [[ $(cached MEMSPAN_BUILD_EXAMPLES) == ON ]]; then examples=ON; fi

needed=()
if [[ $tests == ON ]]; then needed+=(--tests); fi
if [[ $examples == ON ]]; then needed+=(--examples); fi
if $python || $package; then needed+=(--python); fi
if $package; then needed+=(--package); fi
bash "$root/scripts/install_deps.sh" "${needed[@]}"

options=(
  -DCMAKE_BUILD_TYPE="$type"
  -DMEMSPAN_BUILD_TESTS="$tests"
  -DMEMSPAN_BUILD_EXAMPLES="$examples"
)
if [[ ! -f $build/CMakeCache.txt ]]; then
  options+=(-DMEMSPAN_BUILD_BENCHMARKS=OFF)
  # Only at first: ccache in front of the compiler is another command, which would compile everything again.
  if command -v ccache >/dev/null; then options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
fi
printf 'build: %s, in %s; the first time takes minutes\n' "$type" "$build"
(cd -- "$root" && cmake --preset release "${options[@]}" >/dev/null) || fail "cmake could not configure $build"
build_targets build "$build" "${only[@]}"
if ((${#only[@]} > 0)); then
  printf 'build: 100 %%: %s\n' "${only[*]}"
  exit 0
fi

if $python || $package; then bash "$root/scripts/build_wheel.sh" --out "$prefix/wheel"; fi
if $package; then
  # A tree of its own: in install/ may lie what an older version had.
  staged=$build/package
  rm -rf -- "$staged"
  cmake --install "$build" --prefix "$staged" >/dev/null
  bash "$root/packaging/package.sh" --tree "$staged" --wheel "$(ls "$prefix"/wheel/memspan-*.whl)" --out "$root/dist"
  rm -rf -- "$staged"
fi
# The last: what `uninstall` removes is what was installed last.
cmake --install "$build" >/dev/null

home=${prefix//\'/\'\\\'\'} # inside single quotes
home=${home//[\\&|]/\\&}    # inside sed's replacement
sed -e "s|@HOME@|$home|" -e "s|@LIBDIR@|lib|g" "$root/packaging/set_env.sh.in" >"$prefix/set_env.sh"
printf 'build: installed into %s; next: source "%s"\n' "$prefix" "$prefix/set_env.sh"
