#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs on a GPU what is for CUDA, and prints one table: tests of kernels and of memory, the examples, and what
# kernels reach next to what is bare.
#
#   test_cuda.sh [--build DIRECTORY] [--only-build ARCHITECTURE | --built] [--short]
#
#   --build       the build directory (default build-cuda)
#   --only-build  build for this architecture (sm_90, ...) and stop; needs nvcc, but no GPU
#   --built       run what --only-build has built, here or on another machine; needs no compiler
#   --short       measure once, to see that it runs
#
# A run needs a driver and a GPU of compute capability 7.0 or more; two processes share the GPU. A build needs nvcc
# (CUDA 12 or 13). Both take less than eight minutes on 8 cores. Exit codes: 0 all tests passed and all targets were met;
# 1 a failure or a missed target; 2 a wrong option; 3 nothing was run, because the GPU, driver or compiler is missing.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

refuse() {
  printf 'test_cuda: %s\n' "$1" >&2
  exit "$2"
}

build="build-cuda"
architecture=native
builds=true
runs=true
bench=()
while (($# > 0)); do
  case $1 in
    --build)
      (($# > 1)) || refuse "option --build needs a directory" 2
      build=$2
      shift
      ;;
    --only-build)
      (($# > 1)) || refuse "option --only-build needs an architecture, such as sm_90" 2
      architecture=$2
      runs=false
      shift
      ;;
    --built) builds=false ;;
    --short) bench=(--short) ;;
    -h | --help)
      sed -n '3,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) refuse "unknown option \"$1\"; allowed are --build, --only-build, --built and --short" 2 ;;
  esac
  shift
done

$builds || $runs || refuse "options --only-build and --built exclude each other" 2

export PATH=$PATH:/usr/local/cuda/bin
if $builds; then
  command -v nvcc >/dev/null || refuse "there is no nvcc in PATH or /usr/local/cuda/bin" 3
fi
if $runs; then
  command -v nvidia-smi >/dev/null || refuse "there is no driver: no nvidia-smi in PATH" 3
  gpu=$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>&1 | head -n 1) ||
    refuse "the driver has no GPU: $gpu" 3
  [[ $gpu == *,*,* ]] || refuse "the driver has no GPU: $gpu" 3
fi

began=$SECONDS
build_all() {
  cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DMEMSPAN_CUDA=ON -DMEMSPAN_CUDA_ARCHITECTURE="$architecture" \
    -DMEMSPAN_BUILD_TESTS=ON -DMEMSPAN_BUILD_EXAMPLES=ON -DMEMSPAN_BUILD_BENCHMARKS=ON "-DMEMSPAN_TEST_DIRECTORIES=multi;fabric;examples/memfabric" &&
    cmake --build "$build" --parallel --target memspan oshrun cuda_programs device_heap_job all_paths fabric_bm fabric_trans \
      fabric_cuda_bm fabric_cuda_shm fabric_cuda_trans fabric_cuda_absent
}
if $builds; then
  mkdir -p "$build"
  log=$build/build.log
  if ! build_all >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    refuse "the build failed; see $log" 1
  fi
fi
$runs || exit 0
# Programs that were built elsewhere look for the library there.
export LD_LIBRARY_PATH=$root/$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

failed=0
rows=()
# row NAME COMMAND...: passes or not.
row() {
  local name=$1 output result=passed
  shift
  if ! output=$("$@" 2>&1); then
    result=FAILED
    failed=1
    printf '%s\n%s\n' "--- $name" "$output" >&2
  fi
  rows+=("| $name | $result | passed | $([[ $result == passed ]] && echo met || echo missed) |")
}

export SHMEM_SYMMETRIC_SIZE=256m
job=("$build/bin/oshrun" -n 2 --timeout 60)
row 'symmetric heap in memory of the GPU' env MEMSPAN_DEVICE=cuda "${job[@]}" "$build/tests/device_heap_job" moves
row 'pools and transfers, all paths' env MEMSPAN_DEVICE=cuda timeout 120 "$build/tests/all_paths" 2
for type in int float; do
  row "kernels of all kinds, $type" "${job[@]}" "$build/bin/cuda/kernel_on_device_test" -type "$type"
  for source in examples/kernels/*.cc; do
    example=$(basename "$source" .cc)
    row "example $example, $type" "${job[@]}" "$build/bin/cuda/$example" -type "$type"
  done
done
# These tests use the stand-in of the driver elsewhere; without it they find the driver. What ends processes on purpose, or
# needs a small GPU or none, is for the stand-in.
rm -f "$build/tests/cuda_driver/"libcuda.so*
row 'tests of GPU memory' ctest --test-dir "$build" -L cuda -E 'compiles|device_heap_ends|cuda_absent|shortage' -j 4 --timeout 60 --output-on-failure
if measured=$("$build/bin/oshrun" -n 2 --timeout 180 "$build/bin/cuda/cuda_bench" "${bench[@]}" 2>&1); then
  mapfile -t -O "${#rows[@]}" rows < <(grep '^|' <<<"$measured" | tail -n +3)
  if grep -q '| missed |$' <<<"$measured"; then failed=1; fi
else
  printf '%s\n%s\n' "--- measurements" "$measured" >&2
  rows+=("| measurements | FAILED | passed | missed |")
  failed=1
fi

printf '\nCUDA on %s, 2 PEs on one GPU, %d s\n\n' "$gpu" $((SECONDS - began))
printf '%s\n' "| test | result | target | verdict |" "|---|---|---|---|" "${rows[@]}"
exit $failed
