#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# launcher_test.sh OSHRUN CASE [PROBE]: one promise of the launcher. 0 kept, 77 skipped, else broken.
# shellcheck disable=SC2016  # most programs here are one line for another shell
# shellcheck disable=SC2012  # ls of /proc is what the programs do, too
set -euo pipefail

oshrun=$1
name=$2
probe=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Most programs here are shells, and strangers_test.py has the warning about those.
export MEMSPAN_LOG_LEVEL=ERROR

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  for file in "$work/out" "$work/err"; do
    if [[ -s $file ]]; then
      printf -- '--- %s\n' "${file##*/}" >&2
      head -c 4000 "$file" >&2
    fi
  done
  exit 1
}

skip() {
  printf 'SKIPPED: %s\n' "$*"
  exit 77
}

# run CODE ARGUMENTS...: oshrun must return CODE; its output is in $work/out and $work/err.
run() {
  local expected=$1 code=0
  shift
  "$oshrun" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
  [[ $code == "$expected" ]] || fail "oshrun $* returned $code, not $expected"
}

expect_line() {  # FILE LINE
  grep -Fxq -- "$2" "$work/$1" || fail "no line \"$2\" in $1"
}

expect_match() {  # FILE EXTENDED-EXPRESSION
  grep -Exq -- "$2" "$work/$1" || fail "no line like \"$2\" in $1"
}

expect_empty() {
  [[ ! -s $work/$1 ]] || fail "$1 should be empty"
}

expect_lines() {  # FILE COUNT
  local count
  count=$(wc -l <"$work/$1")
  [[ $count == "$2" ]] || fail "$1 has $count lines, not $2"
}

milliseconds() { date +%s%3N; }

is_alive() {  # a zombie that nobody has reaped yet is not
  [[ -r /proc/$1/stat ]] && ! grep -q ') Z' "/proc/$1/stat" 2>/dev/null
}

# wait_until SECONDS COMMAND...
wait_until() {
  local end=$(($(milliseconds) + $1 * 1000))
  shift
  until "$@"; do
    (($(milliseconds) < end)) || return 1
    sleep 0.02
  done
}

has_lines() { [[ $(wc -l <"$1") -ge $2 ]]; }

all_gone() {
  local pid
  for pid in "$@"; do
    ! is_alive "$pid" || return 1
  done
}

# ---- the result ---------------------------------------------------------------------------------

case_exit_code() {
  run 0 -n 3 true
  expect_empty err
  run 3 -n 3 sh -c 'test $MEMSPAN_RANK != 1 || exit 3'
  expect_match err 'oshrun: PE 1 \(process [0-9]+\) exited with code 3'
  expect_lines err 1
}

case_signal_name() {
  run 137 -n 3 sh -c 'test $MEMSPAN_RANK != 2 || kill -KILL $$; sleep 30'
  expect_match err 'oshrun: PE 2 \(process [0-9]+\) was killed by signal 9 \(Killed\)'
  expect_lines err 1
  run 139 -n 2 sh -c 'test $MEMSPAN_RANK != 0 || kill -SEGV $$; sleep 30'
  expect_match err 'oshrun: PE 0 \(process [0-9]+\) was killed by signal 11 \(Segmentation fault\)'
}

case_first_failure_only() {
  run 5 -n 3 sh -c 'case $MEMSPAN_RANK in 0) exit 5;; 1) sleep 0.2; exit 6;; *) sleep 30;; esac'
  expect_match err 'oshrun: PE 0 \(process [0-9]+\) exited with code 5'
  expect_lines err 1
}

case_kills_survivors() {
  local begin
  begin=$(milliseconds)
  run 4 -n 3 sh -c 'test $MEMSPAN_RANK != 0 || exit 4; trap "" TERM; echo $$; while :; do sleep 0.05; done'
  local took=$(($(milliseconds) - begin))
  ((took < 3000)) || fail "survivors that ignore SIGTERM ran for $took ms"
  # shellcheck disable=SC2046  # one word per process
  all_gone $(cat "$work/out") || fail "a survivor is still there"
}

case_no_process_left() {
  # What a wrapper leaves behind ends with it.
  run 0 -n 2 bash -c 'sleep 60 & echo $!'
  # shellcheck disable=SC2046
  wait_until 5 all_gone $(cat "$work/out") || fail "a background process outlived its job"
}

case_many_processes() {
  run 0 -n 64 sh -c 'echo $MEMSPAN_RANK'
  expect_lines out 64
  [[ $(sort -n "$work/out" | uniq | wc -l) == 64 ]] || fail "a rank is missing"
}

# ---- output -------------------------------------------------------------------------------------

case_label() {
  run 0 -n 3 --label sh -c 'echo out $MEMSPAN_RANK; echo err $MEMSPAN_RANK >&2'
  for rank in 0 1 2; do
    expect_line out "[$rank] out $rank"
    expect_line err "[$rank] err $rank"
  done
  expect_lines out 3
  expect_lines err 3
}

case_label_last_line() {
  run 2 -n 2 --label sh -c 'printf "no end"; test $MEMSPAN_RANK = 0 || exit 2'
  expect_line out '[0] no end'
  expect_line out '[1] no end'
}

case_label_volume() {
  # Lines of all lengths, all processes at once: each must come whole, in order, and once.
  run 0 -n 4 --label awk -v rank=x 'BEGIN { for (i = 0; i < 20000; ++i) { s = i " "; for (k = 0; k < i % 37; ++k) s = s "abcdef"; print s "." } }'
  for rank in 0 1 2 3; do
    sed -n "s/^\[$rank\] //p" "$work/out" | awk '
      { if ($1 != NR - 1 || $0 !~ /\.$/ || length($0) != length(NR - 1) + 2 + 6 * ((NR - 1) % 37)) exit 1 }
      END { if (NR != 20000) exit 1 }' || fail "the lines of process $rank are not what it wrote"
  done
  expect_lines out 80000
}

case_reader_gone() {
  local codes
  set +o pipefail
  timeout 20 "$oshrun" -n 2 --label yes 2>/dev/null | head -n 5 >"$work/out"
  codes=${PIPESTATUS[0]}
  [[ $codes == 141 ]] || fail "with nobody to read, the job returned $codes, not 128 + SIGPIPE"
  expect_lines out 5
}

# ---- options ------------------------------------------------------------------------------------

case_options_end_at_program() {
  run 0 -n 1 echo -n 2 --label --timeout 0 -- x
  [[ $(cat "$work/out") == '2 --label --timeout 0 -- x' ]] || fail "the program got other arguments"
  run 0 -n 1 -- echo --label
  expect_line out '--label'
}

case_np_spelling() {
  for spelling in '-n 2' '-np 2' '-n2' '--np 2' '--np=2'; do
    # shellcheck disable=SC2086
    run 0 $spelling echo x
    expect_lines out 2
  done
}

case_environment() {
  PROBE=outside run 0 -n 2 --env A=1 --env 'B=two words' --env C= --env PROBE=inside --env A=2 \
    sh -c 'echo "$A|$B|${C-unset}|$PROBE"'
  expect_line out '2|two words||inside'
  SHMEM_SYMMETRIC_SIZE=3m run 0 -n 1 sh -c 'echo $SHMEM_SYMMETRIC_SIZE'
  expect_line out '3m'
}

case_variables() {
  MEMSPAN_RANK=99 run 0 -n 2 --label sh -c 'echo $MEMSPAN_RANK $MEMSPAN_LOCAL_RANK $MEMSPAN_SIZE ${MEMSPAN_LAUNCH%%:*}'
  expect_line out '[0] 0 0 2 1'
  expect_line out '[1] 1 1 2 1'
}

case_version_and_help() {
  run 0 --version
  expect_match out 'oshrun \(memspan\) [0-9.]+'
  run 0 --help
  expect_match out 'Usage: oshrun -n N .*'
}

case_bad_options() {
  local value
  for value in 0 -1 abc 1.5 '' 16385 99999999999999999999; do
    run 2 -n "$value" true
    expect_lines err 1
    expect_match err 'oshrun: .*from 1 to 16384.*'
  done
  for value in 0 -1 x; do run 2 -n 1 --timeout "$value" true; expect_lines err 1; done
  run 2 -n 1 --env novalue true
  run 2 -n 1 --bind socket true
  run 2 -n 1 --nonsense true
  expect_lines err 1
  run 2 -n 1
  run 2 true
  run 2
  expect_lines err 1
}

case_missing_program() {
  run 127 -n 2 ./no-such-program
  expect_line err 'oshrun: cannot start "./no-such-program": there is no such file'
  expect_lines err 1
  run 127 -n 2 no-such-program-anywhere
  expect_lines err 1
}

case_not_executable() {
  echo hello >"$work/text"
  run 127 -n 2 "$work/text"
  expect_lines err 1
  printf '#!/no/such/interpreter\n' >"$work/script"
  chmod +x "$work/script"
  run 127 -n 2 "$work/script"
  expect_lines err 1
}

case_script_without_interpreter() {
  mkdir "$work/with space"
  echo 'echo "script $1"' >"$work/with space/script"
  chmod +x "$work/with space/script"
  run 0 -n 1 "$work/with space/script" argument
  expect_line out 'script argument'
}

# ---- time ---------------------------------------------------------------------------------------

case_timeout() {
  local begin
  begin=$(milliseconds)
  run 124 -n 3 --timeout 0.5 sh -c 'test $MEMSPAN_RANK != 1 || exit 0; trap "" TERM; while :; do sleep 0.05; done'
  local took=$(($(milliseconds) - begin))
  expect_line err 'oshrun: the job did not end within 0.5 s (--timeout); still running: PE 0, 2'
  expect_lines err 1
  ((took >= 500 && took < 3000)) || fail "ended after $took ms"
}

case_timeout_not_reached() {
  run 0 -n 2 --timeout 30 true
  expect_empty err
}

# ---- input --------------------------------------------------------------------------------------

case_stdin_rank_0() {
  printf 'one\ntwo\n' | "$oshrun" -n 3 --label cat >"$work/out" 2>"$work/err" || fail "oshrun failed"
  expect_line out '[0] one'
  expect_line out '[0] two'
  expect_lines out 2
}

case_closed_standard_descriptors() {
  local code=0
  "$oshrun" -n 2 sh -c 'exit 6' <&- >&- 2>&- || code=$?
  [[ $code == 6 ]] || fail "returned $code, not 6"
}

# ---- where they run -----------------------------------------------------------------------------

# The cores that this process may use, one a line.
usable_cores() {
  sed -n 's/^Cpus_allowed_list:\s*//p' /proc/self/status | tr , '\n' |
    awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); ++i) print i }'
}

case_binding() {
  local cores
  cores=$(usable_cores | wc -l)
  ((cores >= 2)) || skip "needs two cores, this process may use $cores"
  run 0 -n 2 grep Cpus_allowed_list: /proc/self/status
  expect_lines out 2
  ! grep -q '[-,]' "$work/out" || fail "a process is not bound to one core"
  [[ $(sort -u "$work/out" | wc -l) == 2 ]] || fail "two processes share a core"
  # Within the launcher's own mask.
  local last
  last=$(usable_cores | tail -1)
  taskset -c "$last" "$oshrun" -n 1 grep Cpus_allowed_list: /proc/self/status >"$work/out"
  expect_match out "Cpus_allowed_list:\s*$last"
}

case_bind_refused() {
  local cores
  cores=$(usable_cores | wc -l)
  run 2 -n $((cores + 1)) --bind core true
  expect_match err "oshrun: .*$((cores + 1)) processes on $cores cores.*"
  run 0 -n $((cores + 1)) grep Cpus_allowed_list: /proc/self/status
  [[ $(sort -u "$work/out" | wc -l) == 1 ]] || fail "bound although there are too few cores"
}

case_bind_none() {
  run 0 -n 1 --bind none grep Cpus_allowed_list: /proc/self/status
  cmp -s "$work/out" <(grep Cpus_allowed_list: /proc/self/status) || fail "the mask changed"
}

# ---- signals and sudden ends ----------------------------------------------------------------------

# start_in_background ARGUMENTS...: sets $launcher and waits for LINES lines in $work/out.
start_in_background() {
  local lines=$1
  shift
  : >"$work/out"
  # A shell starts background jobs with SIGINT ignored, and what is ignored stays ignored.
  env --default-signal=INT "$oshrun" "$@" >"$work/out" 2>"$work/err" </dev/null &
  launcher=$!
  wait_until 20 has_lines "$work/out" "$lines" || fail "the processes did not start"
}

case_launcher_killed() {
  start_in_background 4 -n 4 sh -c 'echo $$; exec sleep 60'
  kill -KILL "$launcher"
  # shellcheck disable=SC2046
  wait_until 2 all_gone $(cat "$work/out") || fail "a process outlived the launcher"
}

case_wrapper_killed_with_launcher() {
  start_in_background 4 -n 2 sh -c 'echo $$; sleep 60 & echo $!; wait'
  kill -KILL "$launcher"
  # shellcheck disable=SC2046
  wait_until 2 all_gone $(cat "$work/out") || fail "a process outlived the launcher"
}

case_forwards_signals() {
  local number code
  for number in INT TERM HUP; do
    start_in_background 2 -n 2 sh -c "trap 'echo got; exit 0' $number; echo ready; while :; do sleep 0.02; done"
    kill -"$number" "$launcher"
    code=0
    wait "$launcher" || code=$?
    [[ $code == 0 ]] || fail "SIG$number: returned $code"
    [[ $(grep -c got "$work/out") == 2 ]] || fail "SIG$number reached too few processes"
  done
  start_in_background 2 -n 2 sh -c "trap 'echo one' USR1; trap 'echo two; exit 0' USR2; echo ready; while :; do sleep 0.02; done"
  kill -USR1 "$launcher"
  wait_until 5 has_lines "$work/out" 4 || fail "SIGUSR1 was not forwarded"
  kill -USR2 "$launcher"
  wait "$launcher" || fail "SIGUSR2 was not forwarded"
  # Without a handler the signal ends the job.
  start_in_background 2 -n 2 sh -c 'echo ready; exec sleep 60'
  kill -TERM "$launcher"
  code=0
  wait "$launcher" || code=$?
  [[ $code == 143 ]] || fail "SIGTERM: returned $code, not 143"
  expect_line err 'oshrun: the job was ended by signal 15 (Terminated)'
  expect_lines err 1
}

case_second_signal() {
  start_in_background 2 -n 2 sh -c 'trap "" TERM; echo $$; while :; do sleep 0.02; done'
  kill -TERM "$launcher"
  sleep 0.3
  is_alive "$launcher" || fail "the first SIGTERM ended a job that ignores it"
  kill -TERM "$launcher"
  local code=0
  wait "$launcher" || code=$?
  [[ $code == 143 ]] || fail "returned $code, not 143"
  # shellcheck disable=SC2046
  all_gone $(cat "$work/out") || fail "a process is still there"
}

case_ignored_signals_stay() {
  (
    trap '' HUP
    start_in_background 1 -n 1 sh -c 'echo ready; sleep 0.5; echo done'
    kill -HUP "$launcher"
    wait "$launcher" || fail "SIGHUP ended a job under nohup"
  )
  expect_line out 'done'
}

# ---- nothing leaks --------------------------------------------------------------------------------

case_no_descriptors_leak() {
  # Each process has: 0 1 2, what we had open, the board, the heaps, its own store socket.
  run 0 -n 3 --label bash -c 'ls -l /proc/$$/fd | grep -c -e memfd:memspan -e socket:'
  for rank in 0 1 2; do expect_line out "[$rank] 3"; done
  local before after
  before=$(ls /proc/self/fd 2>"$work/err" | wc -l)
  run 0 -n 3 --label ls -1 /proc/self/fd
  for rank in 0 1 2; do
    after=$(grep -c "^\[$rank\]" "$work/out")
    [[ $after == $((before + 3)) ]] || fail "process $rank has $after descriptors, a plain one $before"
  done
}

case_descriptor_numbers_are_high() {
  run 0 -n 2 bash -c 'exec 3>/dev/null 9>/dev/null; ls -l /proc/$$/fd | grep -c -e memfd:memspan -e socket:'
  [[ $(sort -u "$work/out") == 3 ]] || fail "a script closed one of our descriptors"
}

case_descriptor_limit() {
  # The launcher raises its own limit as far as it may, and the processes get theirs back.
  (ulimit -Sn 40 && run 0 -n 60 sh -c 'ulimit -Sn')
  [[ $(sort -u "$work/out") == 40 ]] || fail "the processes' limit changed"
  (ulimit -n 150 && run 1 -n 60 --label true)
  expect_match err 'oshrun: 60 processes need [0-9]+ open files in the launcher, and the limit is 150 \(ulimit -Hn\)'
}

case_nothing_in_dev_shm() {
  ls -A /dev/shm >"$work/before"
  run 137 -n 2 sh -c 'kill -KILL $$'
  run 0 -n 2 true
  ls -A /dev/shm >"$work/after"
  # Others may use /dev/shm meanwhile: only what bears our name counts.
  ! comm -13 "$work/before" "$work/after" | grep -q memspan || fail "something was left in /dev/shm"
}

# ---- processes that joined ------------------------------------------------------------------------

case_joined_killed() {
  local begin
  begin=$(milliseconds)
  run 137 -n 3 "$probe" kill
  local took=$(($(milliseconds) - begin))
  expect_match err 'oshrun: PE 1 \(process [0-9]+\) was killed by signal 9 \(Killed\)'
  [[ $(grep -c '^oshrun:' "$work/err") == 1 ]] || fail "more than one line from the launcher"
  [[ $(grep -v '^oshrun:' "$work/err" | grep -c 'PE 1') == 2 ]] || fail "each survivor should name PE 1"
  ((took < 3000)) || fail "took $took ms"
}

case_joined_without_finalize() {
  run 1 -n 3 "$probe" no_finalize
  expect_match err 'oshrun: PE 1 \(process [0-9]+\) exited with code 0 without shmem_finalize'
}

case_joined_global_exit() {
  run 7 -n 3 "$probe" global_exit
  ! grep -q '^oshrun:' "$work/err" || fail "shmem_global_exit is not an error of the launcher's"
}

case_joined_exit_code() {
  run 9 -n 3 "$probe" exit_code
  expect_match err 'oshrun: PE 1 \(process [0-9]+\) exited with code 9'
}

case_joined_before_other_left() {
  run 1 -n 3 "$probe" leave_before_init
  expect_match err 'oshrun: PE 1 \(process [0-9]+\) exited with code 0 without shmem_init'
}

case_joined_launcher_killed() {
  start_in_background 3 -n 3 "$probe" wait
  kill -KILL "$launcher"
  # shellcheck disable=SC2046
  wait_until 2 all_gone $(cat "$work/out") || fail "a process outlived the launcher"
}

declare -F "case_$name" >/dev/null || fail "there is no case \"$name\""
"case_$name"
echo "passed: $name"
