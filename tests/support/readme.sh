# SPDX-License-Identifier: Apache-2.0
# What the README, or another page that $readme names, shows, for tests that run it literally. To be sourced.
# shellcheck shell=bash

readme=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)/README.md

no_such() {
  printf 'the README has no %s\n' "$1" >&2
  return 1
}

# program_of_readme WORDS FILE: the program in C, C++ or Python that has the words.
program_of_readme() {
  awk -v words="$1" '
    /^```(c|cpp|python)$/ { program = ""; inside = 1; next }
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

# output_of_readme WORDS: the first block of text behind the block of code that has the words.
output_of_readme() {
  local output
  output=$(awk -v words="$1" '
    /^```text$/ && found { shown = 1; next }
    /^```$/ { if (shown) exit; inside = 0 }
    shown { print; next }
    inside && index($0, words) { found = 1 }
    /^```[a-z]+$/ { inside = 1 }' "$readme")
  [[ -n $output ]] || no_such "output of $1"
  printf '%s\n' "$output"
}
