#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and runs matmul_allreduce. Works from any directory.
#
#   bash run.sh -ranks 2 -M 1024 -K 2048 -N 8192 [-type fp16|bf16|float|int32] [-seed S]
#               [-repeat COUNT] [-blas openblas|onednn] [-send store|put]
#               [-ipport tcp://HOST:PORT] [-fnpu N]
#
# -ipport and -fnpu are accepted for those who have them in their scripts: processes on one host
# find each other through oshrun, and no accelerator is used. Exit code 2: a wrong option.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../../.." && pwd)

refuse() {
  echo "run.sh: $1 (-help explains)" >&2
  exit 2
}

usage() { sed -n '/^#   bash/,/^# find/p' "${BASH_SOURCE[0]}" | sed 's/^# \{0,1\}//'; }

# A whole number from 1 to $3 (64-bit when not given).
whole_number() {
  [[ $2 =~ ^[1-9][0-9]{0,17}$ ]] && (($2 <= ${3:-999999999999999999})) ||
    refuse "option $1: \"$2\" is not a whole number from 1 to ${3:-999999999999999999}"
}

ranks=2
declare -A size=()
arguments=()
while (($# > 0)); do
  option=$1
  shift
  case ${option/#--/-} in
    -h | -help) usage; exit 0 ;;
    -ranks | -M | -K | -N | -type | -seed | -repeat | -blas | -send | -ipport | -fnpu) ;;
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
    -ipport) [[ $value =~ ^tcp://[^:]+:[0-9]+$ ]] ||
      refuse "option -ipport: \"$value\" is not tcp://HOST:PORT" ;;
    -fnpu) [[ $value =~ ^[0-9]+$ ]] || refuse "option -fnpu: \"$value\" is not a number" ;;
  esac
done
for name in M K N; do
  [[ -n ${size[$name]:-} ]] || refuse "option -$name is missing"
  arguments=("-$name" "${size[$name]}" "${arguments[@]}")
done

bash "$root/scripts/build.sh" -examples
# One thread a rank from the start: the libraries make their threads while they are loaded.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
exec "$root/build/bin/oshrun" -n "$ranks" "$root/build/bin/matmul_allreduce" "${arguments[@]}"
