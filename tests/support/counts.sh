#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests and counts what came of them: for scripts/test.sh. Whoever reads this in stands in the
# project's root and has set
#   results        a folder of its own
#   jobs           how many tests run at a time
#   allowed_skips  names of tests that may be skipped, as an extended regular expression
#   place          words before what runs tests, which decide where: none for here
#
# A test that fails runs once more, alone. If it passes then it is *unsteady*: counted as passed, and
# told in the summary. A finding of a sanitizer stays a failure, and so do more than $most_unsteady.
# shellcheck disable=SC2154 # they are set by whoever reads this in

passed=0
failed=0
skipped=0
broken=()   # what failed, for the summary; what it printed last is in $results/failure.N
unsteady=() # what failed and passed when it ran again; the same in $results/unsteady.N
most_unsteady=3

heading() { printf '\n==== %s (after %d s)\n' "$*" "$SECONDS"; }

# fail NAME: counts it, with the end of what standard input has.
fail() {
  tail -n 30 >"$results/failure.${#broken[@]}"
  failed=$((failed + 1))
  broken+=("$1")
}

# waver NAME: notes a test that failed and then passed, with the end of what standard input has.
waver() {
  tail -n 30 >"$results/unsteady.${#unsteady[@]}"
  passed=$((passed + 1))
  unsteady+=("$1")
}

# step NAME COMMAND...: one pass or failure.
step() {
  local name=$1
  shift
  heading "$name"
  if "$@" 2>&1 | tee -- "$results/step"; then
    passed=$((passed + 1))
  else
    fail "$name" <"$results/step"
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
    fail "$name" <"$results/step"
  fi
}

# failed_tests FOLDER: an expression for exactly those that failed there last. By their names, since numbers change when
# the folder is configured anew meanwhile.
failed_tests() {
  printf '^(%s)$' "$(sed -E 's/^[0-9]+://; s/[][().*+?^$|\\{}]/\\&/g' "$1/Testing/Temporary/LastTestsFailed.log" | paste -sd '|')"
}

# run_ctest PRESET FOLDER OPTIONS...: adds ctest's own counts to ours.
run_ctest() {
  local preset=$1 folder=$2 report=$results/$1.xml
  shift 2
  heading "ctest $preset"
  local ctest=("${place[@]}" ctest --test-dir "$folder" --output-on-failure)
  rm -f -- "$report" "$report.again"
  "${ctest[@]}" --no-tests=error --parallel "$jobs" --output-junit "$report" "$@" ||
    again "${ctest[@]}" --tests-regex "$(failed_tests "$folder")" --output-junit "$report.again"
  count_report "$preset" "$report"
}

# run_pytest NAME PYTHON TESTS...: the same for tests in Python.
run_pytest() {
  local name=$1 report=$results/$1.xml pytest=("${place[@]}" "$2" -m pytest -v -o cache_dir="$results/$1.cache")
  shift 2
  heading "pytest $name"
  rm -f -- "$report" "$report.again"
  "${pytest[@]}" --junitxml "$report" "$@" ||
    again "${pytest[@]}" --last-failed --last-failed-no-failures none --junitxml "$report.again" "$@"
  count_report "$name" "$report"
}

# again COMMAND...: runs what failed once more.
again() {
  heading 'what failed, once more'
  "$@" || true
}

# count_report NAME FILE: adds the counts of a JUnit report to ours. What ran again is in FILE.again.
count_report() {
  local preset=$1 report=$2 kind name output
  if [[ ! -s $report ]]; then
    fail "$preset did not run" </dev/null
    return
  fi
  while IFS=$'\t' read -r kind name output; do
    case $kind in
      passed) passed=$((passed + 1)) ;;
      unsteady) waver "$preset: $name" <"$output" ;;
      skipped)
        if [[ $name =~ $allowed_skips ]]; then
          skipped=$((skipped + 1))
        else
          fail "$preset: $name (skipped)" <"$output"
        fi
        ;;
      *) fail "$preset: $name" <"$output" ;;
    esac
  done < <(python3 tests/support/junit.py "$report" "$results")
}

summary() {
  local i
  if ((${#unsteady[@]} > most_unsteady)); then
    fail "unsteady tests: ${#unsteady[@]}, and $most_unsteady are borne" </dev/null
  fi
  for i in "${!unsteady[@]}"; do
    printf 'unsteady: %s: failed, and passed when it ran again alone\n' "${unsteady[i]}"
    sed 's/^/  | /' "$results/unsteady.$i"
  done
  for i in "${!broken[@]}"; do
    printf 'failed: %s\n' "${broken[i]}"
    sed 's/^/  | /' "$results/failure.$i"
  done
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  ((failed == 0))
}
