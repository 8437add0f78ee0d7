#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs matmul_allreduce. Works from any directory.
#
#   bash run.sh -ranks 2 -M 1024 -K 2048 -N 8192 [-type fp16|bf16|float|int32] [-seed S]
#               [-repeat COUNT] [-blas openblas|onednn] [-send store|put] [-blocks COUNT]
#               [-gnpus RANKS [-frank FIRST] -ipport tcp://HOST:PORT] [-fnpu N]
#
# On several hosts it is started on each: -gnpus ranks of the job run there, the first of them is
# -frank (0), and all meet at -ipport, an address of the host of rank 0. Without -gnpus all ranks
# run here, and -ipport is not needed. -fnpu, the first device of this host, is accepted and means
# nothing: no accelerator is used. Exit code 2: a wrong option.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

refuse() {
  echo "run.sh: $1 (-help explains)" >&2
  exit 2
}

usage() { sed -n '/^#   bash/,/^# nothing/p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//'; }

# whole_number OPTION VALUE [MOST]: from 1; MOST is 64-bit when not given.
whole_number() {
  [[ $2 =~ ^[1-9][0-9]{0,17}$ ]] && (($2 <= ${3:-999999999999999999})) ||
    refuse "option $1: \"$2\" is not a whole number from 1 to ${3:-999999999999999999}"
}

ranks=2
here_ranks=
first=
address=
port=
declare -A size=()
arguments=()
while (($# > 0)); do
  option=$1
  shift
  case ${option/#--/-} in
    -h | -help) usage; exit 0 ;;
    -ranks | -M | -K | -N | -type | -seed | -repeat | -blas | -send | -blocks | -gnpus | -frank | -ipport | -fnpu) ;;
    -*) refuse "unknown option $option" ;;
    *) refuse "unexpected argument \"$option\"" ;;
  esac
  (($# > 0)) || refuse "option $option needs a value"
  value=$1
  shift
  case ${option/#--/-} in
    -ranks) whole_number -ranks "$value" 64; ranks=$value ;;
    -M | -K | -N) whole_number "$option" "$value"; size[${option##*-}]=$value ;;
    -type) [[ $value =~ ^(fp16|bf16|float|int32)$ ]] ||
      refuse "option -type: \"$value\" is not fp16, bf16, float or int32"
      arguments+=(-type "$value") ;;
    -seed) [[ $value =~ ^[0-9]{1,19}$ ]] || refuse "option -seed: \"$value\" is not a whole number"
      arguments+=(-seed "$value") ;;
    -repeat) whole_number -repeat "$value" 1000; arguments+=(-repeat "$value") ;;
    -blas) [[ $value =~ ^(openblas|onednn)$ ]] ||
      refuse "option -blas: \"$value\" is not openblas or onednn"
      arguments+=(-blas "$value") ;;
    -send) [[ $value =~ ^(store|put)$ ]] || refuse "option -send: \"$value\" is not store or put"
      arguments+=(-send "$value") ;;
    -blocks) whole_number -blocks "$value" 64; arguments+=(-blocks "$value") ;;
    -gnpus) whole_number -gnpus "$value" 64; here_ranks=$value ;;
    -frank) [[ $value =~ ^(0|[1-9][0-9]?)$ ]] || refuse "option -frank: \"$value\" is not a rank"
      first=$value ;;
    -ipport) [[ $value =~ ^tcp://([^:]+):([0-9]+)$ ]] ||
      refuse "option -ipport: \"$value\" is not tcp://HOST:PORT"
      address=${BASH_REMATCH[1]} port=${BASH_REMATCH[2]} ;;
    -fnpu) [[ $value =~ ^[0-9]+$ ]] || refuse "option -fnpu: \"$value\" is not a number" ;;
  esac
done
for name in M K N; do
  [[ -n ${size[$name]:-} ]] || refuse "option -$name is missing"
  arguments=("-$name" "${size[$name]}" "${arguments[@]}")
done

[[ -z $first || -n $here_ranks ]] || refuse "option -frank needs -gnpus, the number of ranks on this host"
here_ranks=${here_ranks:-$ranks}
first=${first:-0}
((first + here_ranks <= ranks)) ||
  refuse "options -frank $first and -gnpus $here_ranks are the ranks $first to $((first + here_ranks - 1)), but -ranks is $ranks"
((here_ranks == ranks)) || [[ -n $address ]] ||
  refuse "option -gnpus $here_ranks of $ranks ranks needs -ipport tcp://HOST:PORT, where all hosts meet"

build=(bash "$root/scripts/build.sh" -examples -only "memspan,oshrun,matmul_allreduce")
# One thread a rank from the start: the libraries make their threads while they are loaded.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
program=$root/build/bin/matmul_allreduce
if ((here_ranks == ranks)); then
  "${build[@]}"
  exec "$root/build/bin/oshrun" -n "$ranks" "$program" "${arguments[@]}"
fi

# One after another where several hosts share this folder.
flock "$root/scripts/build.sh" "${build[@]}"
export WORLD_SIZE=$ranks LOCAL_WORLD_SIZE=$here_ranks SHMEM_MASTER_ADDR=$address SHMEM_MASTER_PORT=$port
processes=()
trap '((${#processes[@]} == 0)) || kill "${processes[@]}" 2>/dev/null || true' EXIT
for ((local = 0; local < here_ranks; ++local)); do
  RANK=$((first + local)) LOCAL_RANK=$local "$program" "${arguments[@]}" &
  processes+=($!)
done
# When one fails, the job's other processes notice it and end, too.
result=0
for process in "${processes[@]}"; do
  code=0
  wait "$process" || code=$?
  ((result != 0)) || result=$code
done
processes=()
exit "$result"
