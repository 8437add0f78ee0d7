#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests and counts their results, for scripts/test.sh. A script that sources this runs in the
# project's root and has set
#   results        a folder of its own
#   at_once        how many tests run at a time
#   place          words before what runs tests, which decide where: none for here
#
# A test that fails runs once more, alone. If it passes then it is *unsteady*: counted as passed, and
# shown in the summary. A finding of a sanitizer stays a failure, and so do more than $most_unsteady.
#
# MEMSPAN_TEST_LACKS, which probe_machine sets, names what the machine lacks (support/machine.py). A test
# is skipped only for want of one of these.
# shellcheck disable=SC2154 # they are set by the script that sources this

passed=0
failed=0
skipped=0
broken=()   # what failed, for the summary; what it printed last is in $results/failure.N
unsteady=() # what failed and passed when it ran again; the same in $results/unsteady.N
most_unsteady=3
repeats=()  # the command that repeats each of `broken`
except=     # labels of tests that ctest leaves out, as a regular expression

heading() { printf '\n==== %s (after %d s)\n' "$*" "$SECONDS"; }

# probe_machine: finds what the machine lacks, and reports it.
declare -A reasons=()
probe_machine() {
  local name reason
  heading 'what this machine allows'
  while IFS=$'\t' read -r name reason; do
    reasons[$name]=$reason
    printf 'This machine lacks %s\n' "$reason"
  done < <(bash scripts/probe.sh --reasons)
  export MEMSPAN_TEST_LACKS="${!reasons[*]}"
}
# with_torch, without_torch: whether the tests' environment of Python has it, whatever the system's has.
with_torch() {
  unset 'reasons[torch]'
  export MEMSPAN_TEST_LACKS="${!reasons[*]}"
}
without_torch() {
  reasons[torch]='PyTorch, in the environment of these tests'
  export MEMSPAN_TEST_LACKS="${!reasons[*]}"
}
lacks() { [[ -n ${reasons[$1]-} ]]; }

# skip_for CAPABILITY NAME: counts one skipped test.
skip_for() {
  heading "$2"
  printf 'skipped: this machine lacks %s\n' "${reasons[$1]}"
  skipped=$((skipped + 1))
}

# fail NAME [REPEAT]: counts it, with the end of what standard input has. REPEAT is the command that repeats just it.
fail() {
  tail -n 30 >"$results/failure.${#broken[@]}"
  failed=$((failed + 1))
  broken+=("$1")
  repeats+=("${2-}")
}

# waver NAME: notes a test that failed and then passed, with the end of what standard input has.
waver() {
  tail -n 30 >"$results/unsteady.${#unsteady[@]}"
  passed=$((passed + 1))
  unsteady+=("$1")
}

# repeat_of COMMAND...: what to type to run it again. A function of scripts/test.sh is a part's.
repeat_of() {
  if declare -F -- "$1" >/dev/null && [[ -n ${part-} ]]; then
    printf 'bash scripts/test.sh %s' "$part"
  else
    printf '%q ' "$@"
  fi
}

# step NAME COMMAND...: one pass or failure.
step() {
  local name=$1
  shift
  heading "$name"
  if "$@" 2>&1 | tee -- "$results/step"; then
    passed=$((passed + 1))
  else
    fail "$name" "$(repeat_of "$@")" <"$results/step"
    return 1
  fi
}

# step_of_many NAME COMMAND...: the same for a command that runs many tests of its own: once more if it
# fails.
step_of_many() {
  local name=$1
  shift
  heading "$name"
  if "$@" 2>&1 | tee -- "$results/first"; then
    passed=$((passed + 1))
    return
  fi
  heading 'what failed, once more'
  if "$@" 2>&1 | tee -- "$results/step"; then
    waver "$name" <"$results/first"
  else
    fail "$name" "$(repeat_of "$@")" <"$results/step"
  fi
}

# failed_tests FOLDER: an expression for exactly those that failed there last. By their names, since numbers change when
# the folder is configured anew meanwhile.
failed_tests() {
  printf '^(%s)$' "$(sed -E 's/^[0-9]+://; s/[][().*+?^$|\\{}]/\\&/g' "$1/Testing/Temporary/LastTestsFailed.log" | paste -sd '|')"
}

# leave_out FOLDER OPTIONS...: reports and counts the tests that need what the machine lacks, and sets `labels`, an
# expression of their labels and of $except.
leave_out() {
  local folder=$1 name count
  shift
  labels=$except
  for name in ${MEMSPAN_TEST_LACKS-}; do
    count=$(ctest --test-dir "$folder" -N -L "^needs\\.$name\$" ${labels:+-LE "$labels"} "$@" | sed -n 's/^Total Tests: //p')
    labels+=${labels:+|}"^needs\\.$name\$"
    ((${count:-0} > 0)) || continue
    printf 'This machine lacks %s: %d tests are skipped\n' "${reasons[$name]}" "$count"
    skipped=$((skipped + count))
  done
}

# run_ctest PRESET FOLDER OPTIONS...: adds ctest's own counts to ours.
run_ctest() {
  local preset=$1 folder=$2 report=$results/$1.xml
  shift 2
  heading "ctest $preset"
  local labels ctest=("${place[@]}" ctest --test-dir "$folder" --output-on-failure --test-output-size-passed 1000000)
  leave_out "$folder" "$@"
  rm -f -- "$report" "$report.again"
  "${ctest[@]}" --no-tests=error --parallel "$at_once" --output-junit "$report" ${labels:+-LE "$labels"} "$@" ||
    again "${ctest[@]}" "$@" --tests-regex "$(failed_tests "$folder")" --output-junit "$report.again"
  count_report "$preset" "$report" "ctest --test-dir $folder --output-on-failure -R"
}

# run_pytest NAME PYTHON TESTS...: the same for tests in Python.
run_pytest() {
  local name=$1 report=$results/$1.xml pytest=("${place[@]}" "$2" -m pytest -v -o cache_dir="$results/$1.cache")
  shift 2
  heading "pytest $name"
  rm -f -- "$report" "$report.again"
  "${pytest[@]}" --junitxml "$report" "$@" ||
    again "${pytest[@]}" --last-failed --last-failed-no-failures none --junitxml "$report.again" "$@"
  count_report "$name" "$report" "$(printf '%q ' "${pytest[@]::${#pytest[@]}-2}")-k"
}

# again COMMAND...: runs what failed once more.
again() {
  heading 'what failed, once more'
  "$@" || true
}

# count_report NAME FILE REPEAT: adds the counts of a JUnit report to ours. What ran again is in FILE.again. REPEAT is a
# command that runs the test whose name comes behind it.
count_report() {
  local preset=$1 report=$2 repeat=$3 kind name output tests=0
  if [[ ! -s $report ]]; then
    fail "$preset did not run" </dev/null
    return
  fi
  while IFS=$'\t' read -r kind name output; do
    tests=$((tests + 1))
    case $kind in
      passed) passed=$((passed + 1)) ;;
      unsteady) waver "$preset: $name" <"$output" ;;
      skipped) skipped=$((skipped + 1)) ;;
      failed) fail "$preset: $name" "$repeat $(printf '%q' "$([[ $repeat == ctest* ]] && printf '^%s$' "$name" || printf '%s' "${name%%[*}")")" <"$output" ;;
      *) fail "$preset: $name ($kind)" <"$output" ;;
    esac
  done < <(python3 tests/support/junit.py "$report" "$results")
  ((tests > 0)) || fail "$preset ran no test" </dev/null
}

summary() {
  local i
  if ((${#unsteady[@]} > most_unsteady)); then
    fail "unsteady tests: ${#unsteady[@]}, allowed are $most_unsteady" </dev/null
  fi
  for i in "${!unsteady[@]}"; do
    printf 'unsteady: %s: failed, and passed when it ran again alone\n' "${unsteady[i]}"
    sed 's/^/  | /' "$results/unsteady.$i"
  done
  for i in "${!broken[@]}"; do
    printf 'failed: %s\n' "${broken[i]}"
    sed 's/^/  | /' "$results/failure.$i"
    [[ -z ${repeats[i]} ]] || printf '  repeat just it: %s\n' "${repeats[i]}"
  done
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0))
}
