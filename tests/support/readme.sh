# SPDX-License-Identifier: Apache-2.0
# What the README shows, for tests that do as it says. To be sourced.
# shellcheck shell=bash

readme=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/README.md

no_such() {
  printf 'the README has no %s\n' "$1" >&2
  return 1
}

# program_of_readme WORDS FILE: the C program that has the words.
program_of_readme() {
  awk -v words="$1" '
    /^```c$/ { program = ""; inside = 1; next }
    /^```$/ { if (inside && index(program, words)) { printf "%s", program; exit }; inside = 0 }
    inside { program = program $0 "\n" }' "$readme" >"$2"
  [[ -s $2 ]] || no_such "program with $1"
}

# line_of_readme START: the first line of a shell block that starts so.
line_of_readme() {
  local line
  line=$(awk -v start="$1" '
    /^```sh$/ { inside = 1; next }
    /^```$/ { inside = 0 }
    inside && index($0, start) == 1 { print; exit }' "$readme")
  [[ -n $line ]] || no_such "line that starts with $1"
  printf '%s\n' "$line"
}

# block_of_readme HEADING: the first shell block of that section.
block_of_readme() {
  local block
  block=$(awk -v heading="## $1" '
    /^## / { here = $0 == heading; inside = 0 }
    /^```$/ { if (inside) exit }
    inside { print }
    /^```sh$/ { inside = here }' "$readme")
  [[ -n $block ]] || no_such "shell block in \"$1\""
  printf '%s\n' "$block"
}
