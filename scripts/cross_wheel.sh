#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel for aarch64 on another machine, for the Python of the distribution (3.11 on Debian 12).
#
#   cross_wheel.sh [--out FOLDER] [--python-only]
#
#   --out FOLDER    where the wheel goes (dist); older ones for aarch64 there are removed
#   --python-only   makes only build-aarch64/python/python3, which runs the distribution's Python for aarch64
#
# That Python comes from the distribution's packages for arm64, which are unpacked and not installed, and runs under
# QEMU's user mode: it says what its extensions are called and writes their stubs. The compiler is the one of
# scripts/cross.sh. The last line is the wheel's path.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
place=$root/build-aarch64/python
out=$root/dist
python_only=false

fail() {
  printf 'cross_wheel: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --out)
      [[ -n ${2-} ]] || fail '--out needs a folder'
      out=$2
      shift
      ;;
    --python-only) python_only=true ;;
    --help | -h)
      sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --out and --python-only" ;;
  esac
  shift
done
[[ -x /usr/bin/python3 ]] || fail 'there is no /usr/bin/python3, whose minor version the wheel is for'
bash "$root/scripts/install_deps.sh" --cross --python >&2
name=python$(/usr/bin/python3 -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')

# What nanobind and scikit-build-core are in: modules without machine code, which any processor's Python imports.
environment=$(bash "$root/scripts/python_env.sh" --python /usr/bin/python3 "$root/build-aarch64/python-env")
modules=$(dirname -- "$(dirname -- "$environment")")/lib/$name/site-packages

# What the Python for aarch64 loads of other packages: for pyexpat, zlib, ctypes, bz2 and lzma.
packages=("$name-minimal" "lib$name-minimal" "lib$name-stdlib" "lib$name-dev" libexpat1 zlib1g libffi8 libbz2-1.0 liblzma5)
unpack() {
  local work package
  work=$(mktemp -d -p "$root/build-aarch64")
  (cd -- "$work" && apt-get download -q "${packages[@]/%/:arm64}") >"$work/log" 2>&1 ||
    { apt-get update && cd -- "$work" && apt-get download -q "${packages[@]/%/:arm64}"; } >"$work/log" 2>&1 ||
    fail "apt-get could not fetch ${packages[*]/%/:arm64}: $(grep -m1 '^E' "$work/log" || tail -n 1 "$work/log")"
  for package in "$work"/*.deb; do dpkg-deb -x "$package" "$work/system"; done
  rm -rf -- "$place"
  mkdir -- "$place" "$place/site"
  mv -- "$work/system" "$place/system"
  rm -rf -- "$work"
}
if [[ ! -x $place/system/usr/bin/$name ]]; then unpack; fi
# It is what others start, too, who know nothing of the emulator.
cat >"$place/python3" <<END
#!/bin/sh
PYTHONPATH='$place/site'\${PYTHONPATH:+:\$PYTHONPATH} PYTHONDONTWRITEBYTECODE=1 \\
  exec qemu-aarch64 -L '$place/system' '$place/system/usr/bin/$name' "\$@"
END
chmod 755 "$place/python3"
printf 'import sys\n\nsys.executable = "%s"\n' "$place/python3" >"$place/site/sitecustomize.py"
[[ $("$place/python3" -c 'import platform; print(platform.machine())') == aarch64 ]] || fail "$place/python3 does not run"
if $python_only; then
  printf '%s\n' "$place/python3"
  exit 0
fi

if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT
echo 'cross_wheel: compiles the library and the extension for aarch64: minutes' >&2
(cd -- "$root" && PYTHONPATH=$modules "$place/python3" - "$made" "$place/system/usr/include" "$root" <<<'
import sys
from scikit_build_core.build import build_wheel
made, include, root = sys.argv[1:]
build_wheel(made, {
    "build-dir": "build-aarch64/wheel",
    "cmake.define.CMAKE_TOOLCHAIN_FILE": f"{root}/cmake/aarch64.cmake",
    "cmake.define.CMAKE_CROSSCOMPILING_EMULATOR": "",
    "cmake.define.CMAKE_CXX_FLAGS": f"-isystem {include}",
})') >&2 || fail 'the wheel could not be built; what went wrong stands above'
# As scripts/build_wheel.sh does; what is linked has been stripped.
PATH=$(dirname -- "$environment"):$PATH
"$environment" -m auditwheel repair -w "$made/repaired" \
  --exclude 'libmemspan*' --exclude 'libssl*' --exclude 'libcrypto*' "$made"/memspan-*.whl >"$made/log" 2>&1 ||
  fail "auditwheel: $(tail -n 5 "$made/log")"
wheel=$(basename -- "$made"/repaired/*.whl)
[[ $wheel == *manylinux*_aarch64.whl ]] || fail "the wheel is $wheel, which is not for aarch64 with a known glibc"
mkdir -p -- "$out"
rm -f -- "$out"/memspan-*_aarch64.whl
mv -- "$made/repaired/$wheel" "$out/"
printf '%s\n' "$out/$wheel"
