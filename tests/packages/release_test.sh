#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release_test.sh CASE: what scripts/release.sh makes, in build/release. `make` comes first; the others look at what it made.
#
#   make         the release of the last commit
#   wheels       each wheel in each Python that it fits, with a job and the tests of the package shmem
#   aarch64      the wheels for that processor in Debian's Pythons for it, under QEMU, with the same tests; needs root
#   older        the wheel for Python 3.9 in an empty Debian 11: an older glibc, and no OpenSSL 3, as it says; needs root
#   sdist        it has what git tracks, and installs into an empty environment
#   sbom         valid SPDX, and it names what is linked
#   debs         lintian, and what the packages say of themselves
#   life         the Debian packages, the .run package and the wheel are installed into empty systems, used, upgraded and
#                removed; needs root
#   dockerfile   the Dockerfile's steps are done in empty systems, and its command runs; needs root
#   again        a second build in another folder, with a compiler's cache that is empty, has the same bytes
set -euo pipefail

name=$1
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
area=$root/build/release
first=$area/first
version=$(git -C "$root" show HEAD:VERSION)

# shellcheck source=tests/support/foreign_python.sh
source "$root/tests/support/foreign_python.sh"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
fresh() { rm -rf -- "$1" && mkdir -p -- "$1"; }

case_make() {
  rm -rf -- "$first"
  fresh "$area/first-work"
  bash "$root/scripts/release.sh" --out "$first" --work "$area/first-work"
  (cd -- "$first" && sha256sum --quiet -c SHA256SUMS)
  local file
  for file in "SHMEM_${version}_linux-*.run" "mxc-memfabric-hybrid-${version}_linux_*.run" "libmemspan0_${version}-1_*.deb" \
    "python3-memspan_${version}-1_*.deb" "memspan-$version-cp*.whl" "memspan-$version.tar.gz" "memspan-$version.spdx.json"; do
    compgen -G "$first/$file" >/dev/null || fail "there is no $file"
  done
}

# test_wheel ENVIRONMENT [OPTION...]: what does not need PyTorch, in an environment that has a wheel; with pytest's options.
test_wheel() {
  local place=$1
  shift
  (cd -- "$place" && bin/python -m memspan >/dev/null && MEMSPAN_OSHRUN=$place/bin/oshrun bin/python -m pytest -q -p no:cacheprovider "$@" \
    "$root"/tests/python/test_{shmem,shmem_processes,interpreter,memfabric,kv_pool}.py) || fail "the tests in $place"
}

# Newer ones than those of the wheels, too: that of 3.12 is for them.
case_wheels() {
  local minor interpreter tag wheel python tried=0
  while read -r minor interpreter; do
    tag=cp3$((minor < 12 ? minor : 12))
    wheel=$(compgen -G "$first/memspan-$version-$tag-*_$(uname -m).whl") || fail "there is no wheel for $interpreter"
    fresh "$area/wheels/3.$minor"
    "$interpreter" -m venv "$area/wheels/3.$minor"
    python=$area/wheels/3.$minor/bin/python
    "$python" -m pip install -q --disable-pip-version-check "${wheel}[numpy]" pytest
    "$python" -m pip check
    test_wheel "$area/wheels/3.$minor"
    tried=$((tried + 1))
  done < <(bash "$root/packaging/pythons.sh" 9 10 11 12 13 14)
  ((tried > 0)) || fail 'there was no Python'
  echo "passed in $tried Pythons"
}

# The emulator has no process_vm_readv: what moves memory that the library did not allocate between processes cannot be.
case_aarch64() {
  local tag minor suites
  local -r impossible='test_transfers or test_adopted_arrays or test_mooncakes_methods_from_many_threads or test_the_death_of_a_peer_is_told'
  if [[ $(uname -m) == aarch64 ]]; then
    echo 'skipped: this machine is one; its wheels are those of case wheels'
    return 0
  fi
  printf 'left out, the emulator has no process_vm_readv: %s\n' "${impossible// or/,}"
  # No Debian had 3.10, and the wheel of 3.12 is for 3.13. Debian 11 has 3.9, but no OpenSSL 3.
  while read -r minor tag suites; do
    fresh "$area/aarch64/3.$minor"
    make_foreign_python "$suites" "$area/aarch64/3.$minor" "$(echo "$first"/memspan-"$version"-"$tag"-*_aarch64.whl)[numpy]" pytest
    [[ $("$area/aarch64/3.$minor/bin/python" -c 'import platform; print(platform.machine(), platform.python_version_tuple()[1])') == "aarch64 $minor" ]] ||
      fail "Debian's Python for aarch64 is not 3.$minor"
    test_wheel "$area/aarch64/3.$minor" -k "not ($impossible)"
  done <<'PYTHONS'
9 cp39 bullseye bookworm
11 cp311 bookworm
13 cp312 trixie
PYTHONS
}

case_older() {
  local wheel work=$area/older
  wheel=$(compgen -G "$first/memspan-$version-cp39-*_$(uname -m).whl") || fail 'there is no wheel for Python 3.9'
  fresh "$work"
  (
    # shellcheck source=tests/support/empty_system.sh
    source "$root/tests/support/empty_system.sh"
    suite=bullseye make_root "$work/system"
    cp -- "$wheel" "$work/system/"
    in_root "$work/system" sh -ec '
      apt-get update -qq
      apt-get install -qq -y --no-install-recommends python3-venv >/dev/null
      python3 -m venv /env
      /env/bin/python -m pip install -q --disable-pip-version-check "/$1[numpy]"
      ldd --version | head -n 1
      /env/bin/python -m memspan
      /env/bin/oshrun -n 2 --timeout 60 /env/bin/memspan-perf put --sizes 8,1M
      /env/bin/oshrun -n 2 --timeout 60 /env/bin/python -c "import shmem; shmem.shmem_init(); shmem.shmem_barrier_all(); shmem.shmem_finalize()"
      RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=17000 /env/bin/python -c "import shmem; shmem.shmem_init()" 2>&1 |
        tee /dev/stderr | grep -q "memspan-explain no-openssl"' sh "${wheel##*/}"
  ) || fail 'the wheel in Debian 11'
  rm -rf -- "$work"
}

case_sdist() {
  local python archive=$first/memspan-$version.tar.gz
  fresh "$area/sdist"
  tar -tzf "$archive" | grep -v '/PKG-INFO$' | sed "s#^memspan-$version/##" | sort >"$area/sdist/names"
  git -C "$root" ls-tree -r --name-only -z HEAD | tr '\0' '\n' | sort | diff - "$area/sdist/names" || fail 'it has other files than the commit'
  ${MEMSPAN_TEST_PYTHON:-python3} -m venv "$area/sdist/env"
  python=$area/sdist/env/bin/python
  if command -v ccache >/dev/null; then export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  "$python" -m pip install -q --disable-pip-version-check "$archive"
  (cd -- "$area/sdist" && [[ $("$python" -c 'import memspan, shmem; print(memspan.__version__)') == "$version" ]]) || fail 'it is not that version'
  "$area/sdist/env/bin/oshrun" -n 2 --timeout 60 "$python" -c 'import shmem; shmem.shmem_init(); shmem.shmem_barrier_all(); shmem.shmem_finalize()'
}

case_sbom() {
  local python
  python=$(bash "$root/scripts/python_env.sh" --sbom)
  "$python" "$here/sbom_test.py" "$first" "$first/memspan-$version.spdx.json"
}

case_debs() { bash "$here/debs_test.sh" "$first" "$area/first-work/tree"; }
case_life() {
  bash "$here/debs_life_test.sh" "$first"
  bash "$here/others_life_test.sh" "$first" "$area/first-work/tree"
}

case_dockerfile() {
  local work code=0
  work=$(mktemp -d -p /var/tmp)
  # shellcheck disable=SC2064
  trap "rm -rf -- '$work'" EXIT
  python3 "$root/tests/support/dockerfile.py" --file "$root/Dockerfile" --context "$root" --work "$work" >"$work/out" || code=$?
  [[ $code == 0 ]] || fail "the image's command gave $code: $(tail -n 5 "$work/out")"
  grep -q 'PASS' "$work/out" || fail "the image's command printed: $(cat "$work/out")"
}

case_again() {
  local place file
  place=$(mktemp -d -p /var/tmp "memspan-elsewhere.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf -- '$place'" EXIT
  CCACHE_DIR=$place/cache bash "$root/scripts/release.sh" --out "$place/out" --work "$place/work"
  while read -r _ file; do
    cmp -- "$first/$file" "$place/out/$file" || fail "$file differs between two builds of one commit"
  done <"$first/SHA256SUMS"
  cmp -- "$first/SHA256SUMS" "$place/out/SHA256SUMS"
}

declare -F "case_$name" >/dev/null || fail "there is no case \"$name\""
"case_$name"
echo "passed: $name"
