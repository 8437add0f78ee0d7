#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# without_tls_test.sh BUILD: a build with -DMEMSPAN_TLS=OFF and -DMEMSPAN_PMIX=OFF on a machine that has no
# OpenSSL. What needs neither works; what does says so, and names the option. Objects come from ccache where BUILD has it.
set -euo pipefail

build=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
tree=$build-without-tls # beside it, so that ccache knows the objects
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  cat "$work/log" >&2
  exit 1
}
# Or a test would decide what the jobs here are.
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT MEMSPAN_JOB_SECRET_FILE

of_build() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
options=()
for name in CMAKE_BUILD_TYPE CMAKE_C_COMPILER_LAUNCHER CMAKE_CXX_COMPILER_LAUNCHER CMAKE_CXX_FLAGS_RELWITHDEBINFO MEMSPAN_DEVELOPER; do
  options+=("-D$name=$(of_build "$name")")
done
cmake -S "$root" -B "$tree" -G Ninja "${options[@]}" -DMEMSPAN_TLS=OFF -DMEMSPAN_PMIX=OFF -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON \
  -DMEMSPAN_BUILD_TESTS=OFF -DMEMSPAN_BUILD_BENCHMARKS=OFF -DMEMSPAN_BUILD_EXAMPLES=ON >"$work/log" 2>&1 ||
  fail 'it cannot be configured'
cmake --build "$tree" --target memspan oshrun example_hello >"$work/log" 2>&1 || fail 'it cannot be built'
[[ ! -e $tree/lib/libmemspan_tls.so ]] || fail 'there is a library for TLS'

"$tree/bin/oshrun" -n 2 --timeout 60 "$tree/bin/openshmem/hello" >"$work/log" 2>&1 || fail 'a job does not run'

"${CC:-cc}" "$root/tests/install/consumer/host_store.c" -o "$work/host_store" -I"$root/include" \
  -I"$root/include/smem/host" -I"$root/include/hybm" -L"$tree/lib" -lmf_smem
! LD_LIBRARY_PATH=$tree/lib "$work/host_store" >"$work/log" 2>&1 || fail 'a store with a secret was hosted without TLS'
grep -q 'built without TLS; configure it with -DMEMSPAN_TLS=ON' "$work/log" || fail 'the failure does not name the option'

! env PMIX_RANK=0 PMIX_NAMESPACE=job "$tree/bin/openshmem/hello" >"$work/log" 2>&1 || fail 'a process of a launcher with PMIx ran alone'
grep -q "built without PMIx's headers" "$work/log" || fail 'the failure does not say that PMIx is missing'
echo passed
