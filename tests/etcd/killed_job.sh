#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that is killed leaves keys and leases at etcd; the next one of its name starts all the same.
#
#   killed_job.sh PROGRAM      run by with_etcd; PROGRAM is stays.c's
set -euo pipefail

program=$1
export MEMSPAN_STORE=$MEMSPAN_TEST_ETCD/killed MEMSPAN_JOB=job WORLD_SIZE=2
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkfifo "$work/said" "$work/in0" "$work/in1"
exec {said}<>"$work/said"

# Starts the job and waits until both processes are in it.
begin() {
  RANK=0 "$program" <"$work/in0" >"$work/said" &
  first=$!
  RANK=1 "$program" <"$work/in1" >"$work/said" &
  second=$!
  exec {hold}>"$work/in0" {hold_too}>"$work/in1"
  local line
  for _ in 1 2; do
    IFS= read -r -t 60 line <&"$said"
    [[ $line == in ]]
  done
}

begin
kill -KILL "$first" "$second"
wait "$first" "$second" || true
exec {hold}>&- {hold_too}>&-
begin
exec {hold}>&- {hold_too}>&-
wait "$first"
wait "$second"
echo passed
