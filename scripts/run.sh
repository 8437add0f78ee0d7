#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the unit tests of the interface as a job: the same tests on every rank.
#
#   run.sh [-ranks 8] [-ipport tcp://127.0.0.1:8666] [-gnpus N] [-fnpu 0] [-frank 0] [-test_filter X]
#
#   -ranks        processes in the job
#   -ipport       where they meet, when the job is started in parts or the tests do so themselves
#   -gnpus        processes that this call starts (at most -ranks; all when not given)
#   -frank        rank of the first of them: with -gnpus 4 -frank 4, ranks 4 to 7
#   -fnpu         first device of this host; passed on
#   -test_filter  only tests whose name contains X; none at all is a failure
#
# Build them first with scripts/build.sh -uttests.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
program=$root/build/bin/shmem_unittest
oshrun=$root/build/bin/oshrun

fail() {
  printf 'run: %s\n' "$*" >&2
  exit 1
}

ranks=8
ipport=tcp://127.0.0.1:8666
gnpus=
fnpu=0
frank=0
filter='*'
while (($# > 0)); do
  option=$1
  [[ $option != --* ]] || option=${option#-}
  case $option in
    -ranks | -ipport | -gnpus | -fnpu | -frank | -test_filter)
      (($# > 1)) || fail "$1 needs a value"
      ;;
    -h | -help)
      sed -n '3,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; see run.sh -help" ;;
  esac
  case $option in
    -ranks) ranks=$2 ;;
    -ipport) ipport=$2 ;;
    -gnpus) gnpus=$2 ;;
    -fnpu) fnpu=$2 ;;
    -frank) frank=$2 ;;
    -test_filter) filter="*$2*" ;;
  esac
  shift 2
done

# check_number NAME VALUE LEAST MOST
check_number() {
  if ! [[ $2 =~ ^[0-9]{1,6}$ ]] || ((10#$2 < $3 || 10#$2 > $4)); then
    fail "$1 is \"$2\"; allowed is a whole number from $3 to $4"
  fi
}
check_number -ranks "$ranks" 1 16384
gnpus=${gnpus:-$ranks}
check_number -gnpus "$gnpus" 1 16384
check_number -fnpu "$fnpu" 0 16384
check_number -frank "$frank" 0 $((ranks - 1))
[[ $ipport == *://* ]] || ipport=tcp://$ipport
[[ $ipport =~ ^tcp6?://(.+):([0-9]+)$ ]] ||
  fail "-ipport is \"$ipport\"; allowed is tcp://ADDRESS:PORT or ADDRESS:PORT"
address=${BASH_REMATCH[1]}
port=${BASH_REMATCH[2]}
((gnpus <= ranks - frank)) || gnpus=$((ranks - frank))

[[ -x $program && -x $oshrun ]] || fail "the tests are not built; run scripts/build.sh -uttests"
matching=$("$program" --gtest_filter="$filter" --gtest_list_tests 2>/dev/null | grep -c '^ ' || true)
((matching > 0)) || fail "no test matches \"$filter\""

arguments=("$ranks" "$ipport" "$gnpus" "$frank" "$fnpu" "--gtest_filter=$filter")
export SHMEM_UID_SESSION_ID=$address:$port
printf 'run: %d tests on %d ranks\n' "$matching" "$ranks"

if ((gnpus == ranks)); then
  exec "$oshrun" -n "$ranks" --label "$program" "${arguments[@]}"
fi

# A part of a job: the ranks meet at -ipport, and other calls of this script start the rest.
export WORLD_SIZE=$ranks SHMEM_MASTER_ADDR=${address//[\[\]]/} SHMEM_MASTER_PORT=$port
pids=()
trap '((${#pids[@]} == 0)) || kill "${pids[@]}" 2>/dev/null || true' EXIT
for ((local = 0; local < gnpus; ++local)); do
  RANK=$((frank + local)) LOCAL_RANK=$local "$program" "${arguments[@]}" &
  pids+=($!)
done
result=0
for pid in "${pids[@]}"; do
  code=0
  wait "$pid" || code=$?
  ((code == 0 || result != 0)) || result=$code
done
pids=()
exit "$result"
