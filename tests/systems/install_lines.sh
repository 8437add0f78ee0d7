#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The README's three lines that install memspan, each on an empty system by root, and then the README's first program in the
# languages that the line's comment names.
set -euo pipefail

# shellcheck source=tests/systems/start.sh
source "$(dirname -- "${BASH_SOURCE[0]}")/start.sh"

program_of_readme shmem_long_put_signal "$work/ring.c"
program_of_readme shmem_putmem "$work/ring.py"

fail() {
  tail -n 20 -- "$work/output"
  printf 'install_lines: %s: %s\n' "$1" "$line" >&2
  exit 1
}

for start in 'bash scripts/build_wheel.sh' 'bash packaging/deb.sh' 'bash scripts/build.sh'; do
  line=$(line_of_readme "$start")
  began=$SECONDS
  printf -- '-- %s\n' "$line"
  system=$work/system
  make_root "$system"
  git clone -q --no-hardlinks -- "$root" "$system/memspan"
  cp -- "$work"/ring.* "$system/memspan/"
  commands=${line%%#*}
  for language in Python C; do
    [[ ${line#*#} == *"$language"* ]] || continue
    declare "$language=$(line_of_readme "$([[ $language == C ]] && echo 'oshcc -o ring' || echo 'oshrun -n 2 python3 ring.py')")"
    commands+=" && ${!language} >$language.output"
  done
  # apt-get asks whether it shall go on.
  in_root "$system" bash -c "cd /memspan && yes | { $commands; }" >"$work/output" 2>&1 || fail 'it failed'
  for language in Python C; do
    [[ ${line#*#} == *"$language"* ]] || continue
    diff <(output_of_readme "${!language}") <(sort "$system/memspan/$language.output") || fail "the program in $language printed something else"
  done
  printf -- '-- %d s\n' $((SECONDS - began))
  rm -rf -- "$system"
done
