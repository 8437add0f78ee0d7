#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds memspan for aarch64 in build-aarch64/, on another machine, and runs the unit, contract and
# multi-process tests of that build under QEMU's user mode: the tests with the label aarch64.
#
#   cross.sh [--build] [--all] [--repeat N]
#
#   --build      only builds
#   --all        with the tests of the store and of tools, which take long
#   --repeat N   runs each test until it fails, N times at most
#
# To start a job by hand: `qemu-aarch64 build-aarch64/bin/oshrun -n 2 qemu-aarch64 PROGRAM`. The
# processes that oshrun starts also need the emulator.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

# What is about the processor; the rest, with --all, is about OpenSSL, sockets and the protocol more.
directories='unit/core;unit/device;unit/memory;unit/node;unit/transport;unit/world;unit/pgas;contract;multi'
others='unit/store;unit/tools;network/world;network/store'
# These cannot be.
impossible=(
  'unit.transport.vector_copy      the emulator has no process_vm_readv'
  'unit.memory.adopted_memory      the emulator has no userfaultfd'
  'unit.memory.static_segment      the emulator has no userfaultfd'
  'network.store.memory            bounds its address space, of which the emulator is a part'
)

fail() {
  printf 'cross: %s\n' "$*" >&2
  exit 2
}

tests=true
repeat=1
while (($# > 0)); do
  case $1 in
    --build) tests=false ;;
    --all) directories+=";$others" ;;
    --repeat)
      repeat=${2-}
      [[ $repeat =~ ^[1-9][0-9]{0,3}$ ]] || fail "--repeat is \"$repeat\", a whole number from 1 is allowed"
      shift
      ;;
    -h | --help)
      sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --build, --all and --repeat N" ;;
  esac
  shift
done

bash scripts/install_deps.sh --cross
names=
for test in "${impossible[@]}"; do
  printf 'cross: left out: %s\n' "$test"
  names+="${test%% *};"
done
options=(-DMEMSPAN_UNIT_TESTS_LEFT_OUT="$names" -DMEMSPAN_TEST_DIRECTORIES="$directories")
if command -v ccache >/dev/null; then
  options+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset aarch64 "${options[@]}" >/dev/null
cmake --build --preset aarch64 --parallel "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)"
if $tests; then
  ctest --test-dir build-aarch64 -L aarch64 --no-tests=error --output-on-failure --parallel "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" \
    --repeat "until-fail:$repeat"
fi
