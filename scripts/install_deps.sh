#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what memspan needs from the distribution's packages. Does nothing, offline and at once,
# when all of it is there.
#
#   install_deps.sh [--python] [--dev] [--cross] [--list]
#
#   --python  also what building the wheel needs (the rest comes by scripts/python_env.sh)
#   --dev     also what the tests, the checks and the benchmarks' rival need, and --python
#   --cross   also what building for aarch64 and running that needs (scripts/cross.sh)
#   --list    print the packages' names and install nothing
set -euo pipefail

base=(
  build-essential g++ cmake ninja-build pkg-config
  libasio-dev libspdlog-dev libfmt-dev libcli11-dev libssl-dev
  libopenblas-dev libdnnl-dev # the example's products
  libgtest-dev libgmock-dev libbenchmark-dev
  iproute2 python3
)
python=(python3-venv python3-dev)
dev=(
  clang clang-tidy clang-format libclang-rt-14-dev
  valgrind # counts instructions
  openmpi-bin libopenmpi-dev # the benchmarks' rival
)
cross=(
  g++-aarch64-linux-gnu qemu-user
  libstdc++6:arm64
  libspdlog-dev:arm64 libfmt-dev:arm64 libssl-dev:arm64
  libgtest-dev:arm64 libgmock-dev:arm64
)

fail() {
  printf 'install_deps: %s\n' "$*" >&2
  exit 1
}

wanted=("${base[@]}")
list=false
for option in "$@"; do
  case $option in
    --python | -python) wanted+=("${python[@]}") ;;
    --dev | -dev) wanted+=("${python[@]}" "${dev[@]}") ;;
    --cross | -cross) wanted+=("${cross[@]}") ;;
    --list) list=true ;;
    --help | -h)
      sed -n '3,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$option\"; allowed are --python, --dev, --cross and --list" ;;
  esac
done
if $list; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi
command -v dpkg-query >/dev/null ||
  fail "this is not a Debian-like system; install by hand what corresponds to: ${wanted[*]}"

native=$(dpkg --print-architecture)
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}:${Architecture}\n' "${wanted[@]}" 2>/dev/null |
  sed -n -e 's/:all$/:'"$native"'/' -e 's/^installed //p' || true)
missing=()
for package in "${wanted[@]}"; do
  [[ $package == *:* ]] && name=$package || name=$package:$native
  grep -Fxq -- "$name" <<<"$installed" || missing+=("$package")
done
((${#missing[@]} > 0)) || exit 0

as_root=()
if [[ $(id -u) != 0 ]]; then
  command -v sudo >/dev/null || fail "missing: ${missing[*]}; run this as root, there is no sudo here"
  as_root=(sudo)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
printf 'install_deps: installing %s\n' "${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
# The lists may be missing (a fresh container) or stale: install first, refresh them if that fails.
options=()
install() {
  "${as_root[@]}" apt-get install -y --no-install-recommends "${options[@]}" "${missing[@]}" </dev/null >>"$log" 2>&1
}
if [[ " ${missing[*]} " == *:arm64\ * ]]; then
  options+=(--no-remove) # another architecture's packages are not worth one of this one's
  dpkg --print-foreign-architectures | grep -Fxq arm64 || "${as_root[@]}" dpkg --add-architecture arm64
fi
install || { "${as_root[@]}" apt-get update >>"$log" 2>&1 && install; } ||
  fail "apt-get could not install ${missing[*]}: $(grep -m1 -E '^(E|Err)' "$log" || tail -n 1 "$log")"
