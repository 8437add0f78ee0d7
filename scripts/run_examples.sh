#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the example programs with kernels, runs them, and compares their results.
#
#   run_examples.sh [NAME ...] [-pes 2] [-type int|float]
#
#   NAME    of examples/kernels, without .cc; all when none is given
#   -pes    processes of the job
#   -type   of the elements; both when it is not given
#
# Exit code 0: all passed; 1: one did not, or did not build; 2: a wrong option.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
source=$root/examples/kernels

refuse() {
  printf 'run_examples: %s (-help explains)\n' "$1" >&2
  exit 2
}

pes=2
types=(int float)
names=()
while (($# > 0)); do
  case $1 in
    -h | -help | --help)
      sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    -pes | -type)
      (($# > 1)) || refuse "option $1 needs a value"
      if [[ $1 == -pes ]]; then pes=$2; else types=("$2"); fi
      shift
      ;;
    -*) refuse "unknown option \"$1\"" ;;
    *)
      [[ $1 != */* && -f $source/$1.cc ]] || refuse "there is no example \"$1\"; there are $(cd "$source" && echo *.cc | sed 's/\.cc//g')"
      names+=("$1")
      ;;
  esac
  shift
done
[[ $pes =~ ^[1-9][0-9]{0,3}$ ]] || refuse "option -pes: \"$pes\" is not a whole number from 1 to 9999"
[[ ${types[0]} == int || ${types[0]} == float ]] || refuse "option -type: \"${types[0]}\"; allowed are int and float"
if ((${#names[@]} == 0)); then
  mapfile -t names < <(cd "$source" && printf '%s\n' *.cc | sed 's/\.cc$//')
fi

bash "$root/scripts/build.sh" -examples
failed=()
for name in "${names[@]}"; do
  for type in "${types[@]}"; do
    "$root/build/bin/oshrun" -n "$pes" --timeout 100 "$root/build/bin/kernels/$name" -type "$type" || failed+=("$name $type")
  done
done
if ((${#failed[@]} > 0)); then
  printf 'run_examples: failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
echo "run_examples: ${#names[@]} examples passed"
