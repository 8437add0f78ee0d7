#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Progress of long commands. Source this file.

# print_progress NAME READER: prints the progress of the command whose output is piped into it, every five seconds as
# "NAME: ...". READER LINE sets `progress`; it fails for lines that the user has to see, which are printed.
print_progress() {
  local name=$1 reader=$2 line='' part='' progress='0 %' last=$SECONDS code
  while true; do
    code=0
    IFS= read -r -t 1 part || code=$?
    line+=$part
    if ((code == 0)); then
      "$reader" "$line" || printf '%s\n' "$line"
      line=
    elif ((code <= 128)); then # the end; more than 128 is the time limit
      [[ -z $line ]] || "$reader" "$line" || printf '%s\n' "$line"
      return 0
    fi
    if ((SECONDS - last >= 5)); then
      last=$SECONDS
      printf '%s: %s\n' "$name" "$progress"
    fi
  done
}

read_ninja() {
  if [[ $1 =~ ^@([0-9]+)/([0-9]+)\  ]]; then
    progress="$((100 * BASH_REMATCH[1] / BASH_REMATCH[2])) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} steps)"
  else
    [[ $1 == 'ninja: no work to do.' ]]
  fi
}

# build_targets NAME BUILD [TARGET...]: builds with every core, and prints the progress.
build_targets() {
  local name=$1 build=$2 targets=()
  shift 2
  (($# == 0)) || targets=(--target "$@")
  # nproc reports OMP_NUM_THREADS instead of the cores when that is set.
  NINJA_STATUS='@%f/%t ' cmake --build "$build" --parallel "$(env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc)" \
    "${targets[@]}" 2>&1 | print_progress "$name" read_ninja
}
