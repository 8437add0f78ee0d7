#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures all tables of docs/performance.md that this machine allows, adds them to the record of its processor family in
# docs/measurements/, and writes the pages. Measuring takes at most 45 minutes on two cores.
#
#   all.sh [--build DIR] [--install] [--only STEP,...] [--quick]
#
#   --build DIR   memspan's build (build); the default one is made if it is missing
#   --install     first installs missing rivals (install_rivals.sh) and memspan's wheel in DIR/rivals
#   --only STEPS  some steps, with commas between them
#   --quick       a minute: some steps with few rounds, into a record that is thrown away; the pages are made, but not written
#
# A step whose rivals are missing is left out and named. If a step fails, neither the record nor the pages change; the rows
# of the other steps are kept in DIR/measured, and the next run continues with them, as with --only and the failed step.
# vLLM's tables need build/engines (scripts/engines_env.sh), tables between hosts need root.
# The exit code is 0 when no step failed, 1 when one did, and 2 when nothing can run.
set -uo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root" || exit 2
build=build
install=false
only=
quick=false
readonly most=2700 # seconds, of all steps

fail() {
  printf 'all: %s\n' "$*" >&2
  exit 2
}

while (($#)); do
  case $1 in
    --build | --only)
      [[ $# -gt 1 ]] || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --install) install=true ;;
    --quick) quick=true ;;
    -h | --help)
      sed -n '3,17s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --build, --install, --only and --quick" ;;
  esac
  shift
done

# ---- what the machine has

python=$build/rivals/bin/python
engines=build/engines/bin/python
imports() { [[ -x $1 ]] && "$1" -c "import $2" 2>/dev/null; }
has_hosts() { [[ -z $(bash scripts/probe.sh --lacks hosts 2>&1) ]]; }

if [[ ! -e $build/lib/libshmem.so || ! -e $build/bin/memfabric_bench ]]; then
  [[ $build == build ]] || fail "$build has no lib/libshmem.so or bin/memfabric_bench"
  bash scripts/build.sh -uttests -examples || fail 'scripts/build.sh failed'
fi
if $install; then
  wheel=$(bash scripts/build_wheel.sh | tail -n 1)
  [[ -e $wheel ]] || fail 'scripts/build_wheel.sh made no wheel'
  bash benchmarks/install_rivals.sh "$build/rivals" "$wheel" || echo 'all: some rivals are missing; their rows are left out' >&2
fi

mpis=()
for folder in "$build"/rivals{,/openmpi,/mpich}; do
  [[ ! -x $folder/bin/mpicxx ]] || mpis+=("$folder")
done
transfers=()
of_hosts=()
for part in nixl:nixl_cu12._api mooncake:mooncake.engine; do
  imports "$python" "${part#*:}" || continue
  transfers+=("${part%:*}")
  of_hosts+=("--${part%:*}" "$python")
done
deepspeed=$(ls -d "$build"/rivals/deepspeed/built 2>/dev/null)

# ---- the record that is written

record=$(python3 benchmarks/record.py)
family=${record##*/}
logs=$build/measured
mkdir -p -- "$logs" || fail "$logs cannot be made"
if $quick; then
  work=$(mktemp -d) || fail 'no temporary folder'
  trap 'rm -rf -- "$work"' EXIT
  working=$work/$family
else
  working=$logs/$family
fi
[[ -e $working || ! -e $record ]] || cp -- "$record" "$working"

failed=()
left_out=()
ran=0
SECONDS=0
wanted() { [[ -z $only || ,$only, == *,$1,* ]]; }

# NAME SECONDS REASON COMMAND...: the step, unless the reason that it cannot run is not empty.
step() {
  local name=$1 limit=$2 reason=$3 began=$SECONDS
  shift 3
  wanted "$name" || return 0
  ((SECONDS + limit <= most)) || reason='no time is left'
  if [[ -n $reason ]]; then
    left_out+=("$name: $reason")
    return 0
  fi
  ((ran += 1))
  printf 'all: %s ...' "$name" >&2
  if timeout -k 10 "$limit" "$@" --record "$working" >"$logs/$name.log" 2>&1; then
    printf ' %d s\n' "$((SECONDS - began))" >&2
  else
    printf ' failed (%s): %s\n' "$logs/$name.log" "$(tail -n 1 "$logs/$name.log")" >&2
    failed+=("$name")
  fi
}
# The reason, unless the command succeeds.
unless() {
  local reason=$1
  shift
  "$@" >/dev/null 2>&1 || echo "$reason"
}
joined() {
  local IFS=,
  echo "$*"
}

no_mpi=$(unless 'no MPI is installed (--install)' test "${#mpis[@]}" -gt 0)
no_openmpi=$(unless 'Open MPI is not installed (--install)' test -x "$build/rivals/openmpi/bin/mpicxx")
no_root=$(unless 'network namespaces need root' has_hosts)
no_iperf=${no_root:-$(unless 'iperf3 is not installed' command -v iperf3)}
no_valgrind=$(unless 'valgrind is not installed' command -v valgrind)
no_wheel=$(unless 'the rivals have no wheel of memspan (--install)' imports "$python" memspan)
no_torch=${no_wheel:-$(unless 'PyTorch is not installed (--install)' imports "$python" torch)}
no_deepspeed=${no_torch:-$(unless 'DeepSpeed is not installed (--install)' test -n "$deepspeed")}
no_transfers=${no_torch:-$(unless 'neither NIXL nor Mooncake is installed (--install)' test "${#transfers[@]}" -gt 0)}
no_engines=$(unless 'vLLM is not installed (scripts/engines_env.sh)' imports "$engines" vllm)
no_product=$(unless 'matmul_allreduce is not built' test -x "$build/bin/matmul_allreduce")
calls=$build/benchmarks/instructions/instructions_calls
no_calls=${no_valgrind:-$(unless 'instructions_calls is not built' test -x "$calls")}
no_one_sided=$(unless 'the build has no one-sided access (-DMEMSPAN_NATIVE_RMA=ON)' grep -q '^MEMSPAN_NATIVE_RMA:BOOL=ON' "$build/CMakeCache.txt")

if $quick; then
  step compare 120 '' python3 benchmarks/compare/compare.py --build "$build" --quick --rounds 1
  step memfabric 60 '' python3 benchmarks/memfabric/memfabric.py --build "$build" --quick --rounds 1 --no-rivals --groups mapped,register
  step programs 60 '' python3 benchmarks/programs.py --build "$build" --short
else
  step compare 300 '' python3 benchmarks/compare/compare.py --build "$build" --rounds 5
  step mpi 540 "$no_mpi" python3 benchmarks/groups/groups.py --build "$build" --rounds 7 --budget 0.5 --mpi "$(joined "${mpis[@]}")"
  step memfabric 400 '' python3 benchmarks/memfabric/memfabric.py --build "$build" --rounds 3 --repetitions 3
  step transfers 240 "$no_transfers" "$python" benchmarks/python/rivals.py --only "$(joined "${transfers[@]}")" --rounds 5 --budget 1
  step deepspeed 120 "$no_deepspeed" "$python" benchmarks/python/rivals.py --only allreduce --rounds 5 --budget 1
  step gloo 300 "$no_torch" "$python" benchmarks/python/collectives.py --rounds 3
  step python 60 "$no_wheel" "$python" benchmarks/python/python.py --rounds 5
  step fused 120 "$no_torch" "$python" benchmarks/python/fused.py --rounds 3
  step memory 120 "$no_openmpi" python3 benchmarks/memory/memory.py --build "$build" --mpi "$build/rivals/openmpi"
  step programs 180 '' python3 benchmarks/programs.py --build "$build"
  step instructions 30 "$no_calls" python3 benchmarks/instructions/instructions.py "$calls"
  step product 120 "$no_product" python3 benchmarks/device/fused_matmul.py --build "$build" --rounds 3
  step hosts 200 "$no_iperf" python3 benchmarks/hosts/two_hosts.py --build "$build" --rounds 3 --without OSHMEM ${mpis[0]:+--intel-mpi "${mpis[0]}"}
  step hosts_transfers 90 "${no_iperf:-$no_transfers}" "$python" benchmarks/hosts/transfers.py --rounds 3 "${of_hosts[@]}"
  step hosts_gloo 60 "${no_root:-$no_torch}" "$python" benchmarks/python/collectives.py --hosts --rounds 5
  step one_sided 90 "$no_one_sided" python3 benchmarks/hosts/native.py --build "$build" --rounds 3 --quick
  step prefill 300 "$no_engines" "$engines" benchmarks/engines/disaggregation.py --layers 4 --rounds 3
  step kv_pool 300 "$no_engines" "$engines" benchmarks/engines/pool_prefix.py --rounds 3
fi

# ---- the pages

for line in "${left_out[@]}"; do printf 'all: left out: %s\n' "$line" >&2; done
((ran > 0)) || fail 'no step can run'
[[ -e $working ]] || failed+=('nothing was measured')
if ((${#failed[@]} == 0)); then
  python3 benchmarks/pages.py --try "$working" || failed+=(pages)
fi
if ((${#failed[@]} > 0)); then
  printf 'all: failed: %s. The record and the pages are as before.\n' "$(joined "${failed[@]}")" >&2
  exit 1
fi
$quick && exit 0
mkdir -p -- "${record%/*}" && mv -- "$working" "$record" && python3 benchmarks/pages.py
