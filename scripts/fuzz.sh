#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the fuzz targets (tests/fuzz) and runs each over its corpus.
#
#   fuzz.sh [--seconds N] [--record]
#
#   --seconds N   for all targets together (60 unless given)
#   --record      adds this run's executions to tests/fuzz/executions.txt
#
# The last line is `fuzz: PASS`; otherwise the path of the input that failed is named and the exit
# status is not zero. Inputs that a run finds beyond the corpus are discarded.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

targets=(frames message records store_state tls_info)
# Of an input: a TLS text may have 10 KiB and is refused beyond; long sequences are only slow.
declare -A most_bytes=([frames]=4096 [message]=4096 [records]=1024 [store_state]=1024 [tls_info]=12288 [etcd]=4096)
seconds=60
record=false
while (($# > 0)); do
  case $1 in
    --seconds)
      seconds=${2-}
      if [[ ! $seconds =~ ^[1-9][0-9]{0,6}$ ]]; then
        printf 'fuzz: --seconds is "%s", a whole number from 1 is allowed\n' "$seconds" >&2
        exit 2
      fi
      shift
      ;;
    --record) record=true ;;
    -h | --help)
      sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      printf 'fuzz: unknown option "%s"; allowed are --seconds N and --record\n' "$1" >&2
      exit 2
      ;;
  esac
  shift
done

options=()
if command -v ccache >/dev/null; then
  options=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
cmake --preset fuzz "${options[@]}" >/dev/null
cmake --build --preset fuzz --parallel "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)"

# Built where its libraries are.
[[ ! -x build-fuzz/tests/fuzz_etcd ]] || targets+=(etcd)

each=$((seconds / ${#targets[@]}))
((each > 0)) || each=1
executions=tests/fuzz/executions.txt
crashes=$root/build-fuzz/crashes
mkdir -p -- "$crashes"
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

# Of one target, so far.
recorded() {
  [[ -f $executions ]] || {
    echo 0
    return
  }
  awk -v name="$1" '$1 == name { count = $2 } END { print count + 0 }' "$executions"
}

declare -A counts
for target in "${targets[@]}"; do
  cp -R -- "tests/fuzz/corpus/$target" "$work/$target"
  log=$work/$target.log
  if ! "build-fuzz/tests/fuzz_$target" -max_total_time="$each" -max_len="${most_bytes[$target]}" \
    -timeout=20 -print_final_stats=1 -artifact_prefix="$crashes/$target-" "$work/$target" >"$log" 2>&1; then
    tail -n 40 -- "$log" >&2
    file=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    printf 'fuzz: FAIL: %s: %s\n' "$target" "${file:-no input was written}"
    exit 1
  fi
  counts[$target]=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -n 1)
  printf 'fuzz: %-12s %12d executions, %d with those recorded\n' "$target" "${counts[$target]}" \
    $(($(recorded "$target") + counts[$target]))
done

if $record; then
  for target in "${targets[@]}"; do
    printf '%s %d\n' "$target" $(($(recorded "$target") + counts[$target]))
  done >"$work/executions"
  cp -- "$work/executions" "$executions"
fi
echo 'fuzz: PASS'
