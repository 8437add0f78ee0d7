#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debs_life_test.sh DEBS: the Debian packages in the folder DEBS, installed into an empty system by apt, used, upgraded and
# removed there. Needs root, debootstrap and the distribution's servers.
set -euo pipefail

debs=$(cd -- "$1" && pwd)
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
version=$(<"$here/../../VERSION")
# shellcheck source=tests/support/life_test.sh
source "$here/../support/life_test.sh"

installed() { in_root "$system" dpkg-query -W -f '${Package} ${Version} ${db:Status-Status}\n' '*memspan*' 2>/dev/null | grep -v ' not-installed$' || true; }

# The same packages with a version of tomorrow.
make_newer() {
  local deb name place=$work/newer
  mkdir -p "$system/packages/newer"
  for deb in "$system"/packages/*.deb; do
    rm -rf -- "$place"
    dpkg-deb -R "$deb" "$place"
    sed -i -e "s/^Version: .*/Version: 99.0-1/" -e "s/(= $version-1)/(= 99.0-1)/g" "$place/DEBIAN/control"
    [[ ! -f $place/DEBIAN/shlibs ]] || sed -i "s/(= $version-1)/(= 99.0-1)/" "$place/DEBIAN/shlibs"
    name=${deb##*/}
    dpkg-deb --root-owner-group -Zgzip -b "$place" "$system/packages/newer/${name/$version-1/99.0-1}" >/dev/null
  done
}

# What a user does first: the README's program by the compiler wrapper, by pkg-config and by CMake, and Python's.
use_it() {
  local way
  mkdir -p "$system/root/ring"
  program_of_readme shmem_init "$system/root/ring/ring.c"
  cat >"$system/root/ring/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.19)
project(ring LANGUAGES C)
find_package(memspan REQUIRED COMPONENTS openshmem)
add_executable(ring ring.c)
target_link_libraries(ring PRIVATE memspan::openshmem)
CMAKE
  there sh -ec 'cd /root/ring && oshcc -o by-oshcc ring.c && cc -o by-pkg-config ring.c $(pkg-config --cflags --libs openshmem)
    cmake -S . -B build && cmake --build build && cp build/ring by-cmake'
  for way in oshcc pkg-config cmake; do
    there sh -ec "oshrun -n 4 --timeout 60 /root/ring/by-$way | sort"
    ring_printed "the ring by $way"
  done
  there memspan-info
  there sh -ec 'memspan-store --help && man -V 2>/dev/null || true'
  [[ -f $system/packages/python3-memspan_${version}-1_$(dpkg --print-architecture).deb ]] || return 0
  cat >"$system/root/ring.py" <<'PYTHON'
import memspan, mf_smem, memfabric_hybrid, mf_adapter, shmem

shmem.shmem_init()
me, n = shmem.get_my_pe(), shmem.get_pe_count()
team = shmem.shmem_barrier_all()
print(f"PE {me} of {n}, memspan {memspan.__version__}")
shmem.shmem_finalize()
PYTHON
  there python3 -c 'import memspan, importlib.metadata as m; assert m.version("memspan") == memspan.__version__; print(memspan.__version__)'
  grep -qx "$version" "$work/out" || fail "python3 printed: $(cat "$work/out")"
  there sh -ec 'oshrun -n 2 --timeout 60 python3 /root/ring.py | sort'
  printed "Python's program" "PE 0 of 2, memspan $version" "PE 1 of 2, memspan $version"
  there python3 -m memspan
  there shmem-config --version
  # A program in C with what Python says of where the library is.
  there sh -ec 'cd /root/ring && say() { python3 -c "import memspan; print(memspan.get_$1_path())"; }
    cc -o by-python ring.c -I"$(say include)" -L"$(say lib)" -lmemspan && ./by-python'
}

make_root "$system"
mkdir "$system/packages"
cp -- "$debs"/*.deb "$system/packages/"
there apt-get update
# What users have of a system that compiles; Python is what python3-memspan brings.
there apt-get install -y --no-install-recommends gcc libc6-dev cmake make pkg-config
files_there >"$work/before"

# shellcheck disable=SC2016
there sh -ec 'apt-get install -y --no-install-recommends /packages/*.deb'
[[ $(installed | grep -c " $version-1 installed\$") == $(ls "$debs"/*.deb | wc -l) ]] || fail "installed are: $(installed)"
use_it
echo 'passed: install'

# Open MPI's programs have the names of memspan-openshmem's: apt says so, and the rest stays.
there apt-get install -s openmpi-bin
grep -q '^Remv memspan-openshmem' "$work/out" || fail "openmpi-bin does not conflict: $(cat "$work/out")"
[[ $(grep -c '^Remv ' "$work/out") == 1 ]] || fail "openmpi-bin removes more: $(grep '^Remv ' "$work/out")"
echo 'passed: beside Open MPI'

make_newer
# shellcheck disable=SC2016
there sh -ec 'apt-get install -y --no-install-recommends /packages/newer/*.deb'
[[ $(installed | grep -c ' 99.0-1 installed$') == $(ls "$debs"/*.deb | wc -l) ]] || fail "installed are: $(installed)"
use_it
# Of different versions they do not go together.
! in_root "$system" sh -c 'apt-get install -s --allow-downgrades /packages/libmemspan0_*.deb' >"$work/out" 2>&1 ||
  grep -q '^Remv libmemspan-dev' "$work/out" || fail "an older library beside newer headers: $(cat "$work/out")"
echo 'passed: upgrade'

there sh -ec 'dpkg-query -W -f "\${Package}\n" "*memspan*" | xargs apt-get purge -y'
[[ -z $(installed) ]] || fail "still there: $(installed)"
there apt-get autoremove -y --purge
files_there >"$work/after"
# What the dependencies that stay compiled or cached is theirs.
diff "$work/before" "$work/after" >"$work/differences" || true
! grep -iE 'memspan|shmem|smem|memfabric|mf_adapter|hybm|aclshmem|oshrun|oshcc' "$work/differences" || fail 'left behind'
echo 'passed: uninstall'
