#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the packages of the distribution that memspan needs. Does nothing, offline and at once,
# if all are installed.
#
#   install_deps.sh [--examples] [--tests] [--python] [--package] [--dev] [--cross] [--release] [--systems] [--list]
#
#   --examples  also what the examples multiply with
#   --tests     also what the tests need
#   --python    also what building the wheel needs (the rest comes by scripts/python_env.sh)
#   --package   also what makes the .run and Debian packages
#   --dev       all of these, and what the checks and the benchmarks' rival need
#   --cross     also what building for aarch64 and running that needs (scripts/cross.sh)
#   --release   also what a release and its tests need (scripts/release.sh)
#   --systems   also what tests on other systems and in containers need
#   --list      print the packages' names and install nothing
#
# MEMSPAN_DEPS=have says that all are installed, for systems without dpkg.
set -euo pipefail

base=(
  build-essential g++ cmake ninja-build pkg-config
  libfmt-dev libcli11-dev libssl-dev
)
examples=(libopenblas-dev libdnnl-dev)
tests=(
  libgtest-dev libgmock-dev iproute2 nftables python3
  openssh-client openssh-server # jobs on several hosts
)
python=(python3-venv python3-dev)
package=(makeself dpkg-dev file)
dev=(
  "${examples[@]}" "${tests[@]}" "${python[@]}" "${package[@]}"
  clang clang-tidy clang-format libclang-rt-14-dev
  ccache # compiles what did not change once for all builds and checkouts
  valgrind # counts instructions
  lld mold # lay programs out in another way
  openmpi-bin libopenmpi-dev # the benchmarks' rival, and a launcher
  mpich                      # another one; mpirun and mpicc stay Open MPI's
  libpmix-dev                # starting under launchers with PMIx, which is built where this is
  libucx-dev                 # the carrier over UCX, which is built where this is
  libcurl4-openssl-dev nlohmann-json3-dev # the store on etcd, which is built where these are
  etcd-server nftables                    # three of it are a store in tests; what cuts one off
)
release=(
  "${package[@]}" "${python[@]}" git
  lintian debootstrap # what judges Debian packages, and empty systems to install them into
)
systems=(git debootstrap podman crun)
cross=(
  g++-aarch64-linux-gnu qemu-user
  libstdc++6:arm64
  libfmt-dev:arm64 libssl-dev:arm64
  libgtest-dev:arm64 libgmock-dev:arm64
)

# shellcheck source=scripts/support/progress.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/support/progress.sh"

fail() {
  printf 'install_deps: %s\n' "$*" >&2
  exit 1
}

wanted=("${base[@]}")
list=false
for option in "$@"; do
  case $option in
    --examples | -examples) wanted+=("${examples[@]}") ;;
    --tests | -tests) wanted+=("${tests[@]}") ;;
    --python | -python) wanted+=("${python[@]}") ;;
    --package | -package) wanted+=("${package[@]}") ;;
    --dev | -dev) wanted+=("${dev[@]}") ;;
    --cross | -cross) wanted+=("${cross[@]}") ;;
    --release | -release) wanted+=("${release[@]}") ;;
    --systems | -systems) wanted+=("${systems[@]}") ;;
    --list) list=true ;;
    --help | -h)
      sed -n '3,18s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$option\"; allowed are --examples, --tests, --python, --package, --dev, --cross, --release, --systems and --list" ;;
  esac
done
if $list; then
  printf '%s\n' "${wanted[@]}"
  exit 0
fi
case ${MEMSPAN_DEPS-} in
  '') ;;
  have) exit 0 ;;
  *) fail "MEMSPAN_DEPS is \"$MEMSPAN_DEPS\"; allowed is \"have\", or nothing" ;;
esac
command -v dpkg-query >/dev/null ||
  fail "this system has no dpkg. Install what corresponds to these packages and set MEMSPAN_DEPS=have: ${wanted[*]}"

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
  command -v sudo >/dev/null || fail "missing: ${missing[*]}; run this as root, because this system has no sudo"
  # It asks for the password where somebody can type it.
  sudo -n true 2>/dev/null || { [[ -t 0 ]] && sudo -v; } ||
    fail "missing: ${missing[*]}; run this as root, because sudo asks for a password"
  as_root=(sudo -n)
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive LC_ALL=C

# apt reports its progress as "dlstatus:NUMBER:PERCENT:TEXT" while it fetches and "pmstatus:PACKAGE:PERCENT:TEXT"
# while it installs; all else goes to the log, and its totals also to the user.
read_apt() {
  if [[ $1 =~ ^(dlstatus|pmstatus):[^:]*:([0-9]+)[0-9.]*: ]]; then
    progress="${BASH_REMATCH[2]} % "
    [[ ${BASH_REMATCH[1]} == dlstatus ]] && progress+=fetched || progress+=installed
    return 0
  fi
  printf '%s\n' "$1" >>"$log"
  case $1 in
    *' newly installed, '* | 'Need to get '* | 'After this operation, '* | 'Fetched '*) printf 'install_deps: %s\n' "$1" ;;
  esac
}
# apt-get makes the descriptor of its progress non-blocking, so that is a pipe of its own: scripts of packages would fail to
# write to theirs. No pseudo-terminal is used, since a bare chroot has none.
apt_get() {
  # shellcheck disable=SC2016 # expanded inside
  "${as_root[@]}" bash -c 'DEBIAN_FRONTEND=noninteractive LC_ALL=C exec apt-get -o APT::Status-Fd=3 -o Dpkg::Use-Pty=0 \
    -o Dir::Log::Terminal=/dev/null "$@" 3> >(exec cat)' apt-get "$@" </dev/null 2>&1 | print_progress install_deps read_apt
}
# The lists may be missing (a fresh container) or stale: install first, refresh them if that fails.
options=()
install() { apt_get install -y --no-install-recommends "${options[@]}" "${missing[@]}"; }
refresh() {
  echo "install_deps: apt-get update"
  apt_get update
}
printf 'install_deps: installing %s, and what they need: minutes where most is missing\n' "${missing[*]}"
if [[ " ${missing[*]} " == *:arm64\ * ]]; then
  options+=(--no-remove) # another architecture's packages are not worth one of this one's
  dpkg --print-foreign-architectures | grep -Fxq arm64 || "${as_root[@]}" dpkg --add-architecture arm64
fi
install || { refresh && install; } ||
  fail "apt-get could not install ${missing[*]}: $(grep -m1 -E '^(E|Err)' "$log" || tail -n 1 "$log")"
