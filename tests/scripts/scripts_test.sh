#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts_test.sh BUILD CASE: what the scripts say where they cannot work, and that they say it at once.
set -euo pipefail

build=$1
name=$2
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
# Others than root must reach it.
work=$(mktemp -d)
trap 'chmod -R u+w -- "$work"; rm -rf -- "$work"' EXIT
chmod 755 "$work"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
said() { grep -qE -- "$1" "$work/out" || fail "it did not say \"$1\" but: $(cat "$work/out")"; }
# gives CODE COMMAND...: the exit code; what it printed goes to $work/out.
gives() {
  local wanted=$1 code=0
  shift
  timeout 240 "$@" >"$work/out" 2>&1 </dev/null || code=$?
  [[ $code == "$wanted" ]] || fail "$* gave $code, not $wanted: $(cat "$work/out")"
}
# A source tree with the scripts, in which the user of the next word may write.
make_tree() {
  mkdir "$work/tree" "$work/tree/tests"
  cp -R -- "$root"/{scripts,packaging,examples,README.md,VERSION} "$work/tree/"
  cp -R -- "$root/tests/support" "$work/tree/tests/"
}
# Somebody who is not root and has no sudo, where no package is installed.
as_stranger() {
  mkdir -p "$work/none/updates" "$work/bin" "$work/home"
  touch "$work/none/status"
  [[ -e $work/bin/bash ]] || { ln -s /usr/bin/* "$work/bin/" && rm -f -- "$work/bin/sudo"; }
  local command=(env PATH="$work/bin" HOME="$work/home" DPKG_ADMINDIR="$work/none")
  if [[ $(id -u) == 0 ]]; then
    chown -R 65534:65534 "$work"/{tree,home}
    command=(setpriv --reuid 65534 --regid 65534 --clear-groups "${command[@]}")
  fi
  printf '%s\n' "${command[@]}"
}

case_help() {
  local script
  for script in "$root"/scripts/*.sh "$root"/packaging/{package,deb}.sh "$root/examples/matmul_allreduce/scripts/run.sh"; do
    [[ $script != */need_writable.sh ]] || continue
    gives 0 bash "$script" --help
    said "${script##*/}"
    gives 0 bash "$script" -h
    said "${script##*/}"
  done
}

# The first command of the README needs no more than it uses.
case_dependencies() {
  make_tree
  local stranger
  mapfile -t stranger < <(as_stranger)
  gives 1 "${stranger[@]}" bash "$work/tree/examples/matmul_allreduce/scripts/run.sh" -M 1 -K 1 -N 1
  said '^install_deps: missing: .*cmake.*libopenblas-dev.*; run this as root, because this system has no sudo'
  ! grep -E 'gtest|benchmark|python|makeself|openmpi' "$work/out" || fail 'that is more than it needs'
  gives 1 "${stranger[@]}" bash "$work/tree/scripts/build.sh" -uttests
  said 'missing: .*libgtest-dev'
  gives 1 "${stranger[@]}" bash "$work/tree/scripts/build_wheel.sh" --out "$work/tree/out"
  said 'missing: .*python3-venv'
  printf '#!/bin/sh\nexit 1\n' >"$work/bin/sudo"
  chmod 755 "$work/bin/sudo"
  gives 1 "${stranger[@]}" bash "$work/tree/scripts/install_deps.sh"
  said '^install_deps: missing: .*cmake.*; run this as root, because sudo asks for a password$'
  [[ $(wc -l <"$work/out") == 1 ]] || fail "more than one line: $(cat "$work/out")"
  printf '#!/bin/sh\n[ "$1" = -n ] || echo "sudo $*"\nexit 1\n' >"$work/bin/sudo"
  gives 1 script -qec "$(printf '%q ' "${stranger[@]}" bash "$work/tree/scripts/install_deps.sh")" /dev/null
  said '^sudo -v' # there is a terminal, where it asks
  gives 1 "${stranger[@]}" bash "$work/tree/packaging/deb.sh" --out "$work/tree/out"
  said 'missing: .*python3-venv.*dpkg-dev|missing: .*dpkg-dev.*python3-venv'
  gives 0 "${stranger[@]}" MEMSPAN_DEPS=have bash "$work/tree/scripts/install_deps.sh"
  [[ ! -s $work/out ]] || fail "it printed $(cat "$work/out")"
  gives 1 "${stranger[@]}" MEMSPAN_DEPS=some bash "$work/tree/scripts/install_deps.sh"
  said 'MEMSPAN_DEPS is "some"; allowed is "have"'
}

# A step that takes long prints where the build is; warnings are printed as they come.
case_progress() {
  # shellcheck disable=SC2016 # expanded inside
  gives 0 bash -euo pipefail -c 'source "$1"
    { echo "@1/4 Building a"; echo "a.cc:1: warning: x"; sleep 7; echo "@2/4 Building b"; } | print_progress build read_ninja' \
    sh "$root/scripts/support/progress.sh"
  [[ $(cat "$work/out") == $'a.cc:1: warning: x\nbuild: 25 % (1 of 4 steps)' ]] || fail "it printed $(cat "$work/out")"
}

case_read_only() {
  make_tree
  local stranger
  mapfile -t stranger < <(as_stranger)
  chmod -R a-w "$work/tree"
  local script
  for script in build.sh build_wheel.sh test.sh; do
    gives 1 "${stranger[@]}" bash "$work/tree/scripts/$script"
    said "^[a-z_]+: cannot write into $work/tree; .*copy the source tree"
    ! grep -E 'apt|missing' "$work/out" || fail "$script went on"
  done
}

case_stops_without_dependencies() {
  make_tree
  local stranger
  mapfile -t stranger < <(as_stranger)
  gives 1 "${stranger[@]}" bash "$work/tree/scripts/test.sh"
  said 'missing: .*libgtest-dev.*run this as root'
  ! grep -q 'clang-tidy' "$work/out" || fail "the first tier asks for what it does not need: $(cat "$work/out")"
  gives 1 "${stranger[@]}" bash "$work/tree/scripts/test.sh" --all
  said 'missing: .*clang-tidy.*etcd-server.*run this as root'
  [[ $(grep -c '^==== ' "$work/out") == 1 ]] || fail "it went on: $(cat "$work/out")"
  [[ $(tail -n 1 "$work/out") == '0 passed, 1 failed, 0 skipped' ]] || fail "it ended with $(tail -n 1 "$work/out")"
}

# clang-tidy that has looked at nothing: a failure when nobody knows what changed.
case_tidy() {
  make_tree
  mkdir -p "$work/tree/build/bin" "$work/tree/src"
  ln -s "$build/bin/oshrun" "$work/tree/build/bin/oshrun"
  echo '[]' >"$work/tree/build/compile_commands.json"
  # What is installed on this machine is not what this is about.
  printf '#!/bin/sh\n' >"$work/tree/scripts/install_deps.sh"
  GIT_CEILING_DIRECTORIES=$work gives 1 bash "$work/tree/scripts/test.sh" tidy
  said 'git says nothing about this source tree'
  said '^1 passed, 1 failed, 0 skipped$'
  command -v git >/dev/null || {
    echo 'not tried: where no file has changed, git is not here'
    return
  }
  local git=(git -C "$work/tree" -c user.name=x -c user.email=x@y)
  "${git[@]}" init -q && "${git[@]}" add -A && "${git[@]}" commit -qm x
  gives 0 bash "$work/tree/scripts/test.sh" tidy
  said 'git says that no C\+\+ file of src, tools or python changed'
}

# .ci/run's last line is the sum of both tiers, and of nothing else that looks like one: a part that runs the tests on another
# system prints their sum too.
case_both_tiers() {
  mkdir -p "$work/tree/.ci" "$work/tree/scripts"
  cp "$root/.ci/run" "$work/tree/.ci/"
  cat >"$work/tree/scripts/test.sh" <<'SH'
[[ ${1-} == --all ]] || { printf '3 passed, %d failed, 1 skipped\n' "$FIRST" && exit "$FIRST"; }
printf '100 passed, 0 failed, 2 skipped\n20 passed, %d failed, 4 skipped\n' "$REST" && exit "$REST"
SH
  local first rest
  for first in 0 1; do
    for rest in 0 1; do
      gives $((first | rest)) env FIRST=$first REST=$rest bash "$work/tree/.ci/run"
      [[ $(tail -n 1 "$work/out") == "23 passed, $((first + rest)) failed, 5 skipped" ]] || fail "it ended with $(tail -n 1 "$work/out")"
    done
  done
  echo 'exit 0' >"$work/tree/scripts/test.sh" # no sum at all
  gives 1 bash "$work/tree/.ci/run"
}

# What test.sh counts: a test that fails once and passes alone is borne and told, three times at most; a
# sanitizer's finding, and what fails twice, is a failure.
case_unsteady() {
  local i
  mkdir "$work/tests"
  cat >"$work/once" <<'SH'
echo "said by $1"
[ -e "$1" ] || { : >"$1"; echo "$2"; exit 1; }
SH
  add_test() { printf 'add_test(%s sh "%s" "%s" "%s")\n' "$1" "$work/once" "$work/flag $1" "${2-}" >>"$work/tests/CTestTestfile.cmake"; }
  count() {
    rm -f -- "$work"/flag*
    gives "$1" bash -euo pipefail -c '
      cd "$1" && results=$2/results at_once=2 && mkdir -p "$results" && source tests/support/counts.sh
      run_ctest dev "$2/tests" && summary' sh "$root" "$work"
  }
  for i in 1 2 3; do add_test "t.$i"; done
  echo 'add_test(t.steady true)' >>"$work/tests/CTestTestfile.cmake"
  count 0
  said '^unsteady: dev: t\.2: failed, and passed when it ran again alone'
  said '^  \| said by .*flag t\.2'
  [[ $(tail -n 1 "$work/out") == '4 passed, 0 failed, 0 skipped' ]] || fail "it ended with $(tail -n 1 "$work/out")"
  add_test t.4
  count 1
  said '^failed: unsteady tests: 4, allowed are 3'
  # It is configured anew meanwhile, and a test more comes before it.
  cat >"$work/grows" <<'SH'
[ -e "$1" ] || { : >"$1"; sed -i '1i add_test(t.0 true)' "$2"; exit 1; }
SH
  printf 'add_test(t.grows sh "%s" "%s" "%s")\n' "$work/grows" "$work/flag" "$work/tests/CTestTestfile.cmake" >"$work/tests/CTestTestfile.cmake"
  count 0
  said '^unsteady: dev: t\.grows: failed, and passed when it ran again alone'
  printf 'add_test(t.never false)\n' >"$work/tests/CTestTestfile.cmake"
  add_test t.race 'WARNING: ThreadSanitizer: data race'
  count 1
  said '^failed: dev: t\.never'
  said '^failed: dev: t\.race'
  [[ $(tail -n 1 "$work/out") == '0 passed, 2 failed, 0 skipped' ]] || fail "it ended with $(tail -n 1 "$work/out")"
}

# A skip is right only for want of something that the probe does not find either.
case_skips() {
  mkdir -p "$work/tests"
  local list=$work/tests/CTestTestfile.cmake
  skip() {
    printf '#!/bin/sh\nprintf "%%b\\n" "$1"\nexit "${2:-0}"\n' >"$work/prints" && chmod +x "$work/prints"
    printf 'add_test(%s "%s" "%s" %s)\nset_tests_properties(%s PROPERTIES SKIP_RETURN_CODE 77 LABELS "%s")\n' "$1" "$work/prints" "$2" "${3:-0}" "$1" "${4-}" >>"$list"
  }
  count() {
    gives "$1" env MEMSPAN_TEST_LACKS=gpu bash -euo pipefail -c '
      cd "$1" && results=$2/results at_once=2 && mkdir -p "$results" && source tests/support/counts.sh && reasons[gpu]="a GPU"
      run_ctest dev "$2/tests" && summary' sh "$root" "$work"
    [[ $(tail -n 1 "$work/out") == "$2" ]] || fail "it ended with: $(tail -n 5 "$work/out")"
  }
  skip t.lacking needs=gpu 77
  skip t.labelled unused 1 needs.gpu
  skip t.other 'does not apply: one process' 77
  skip t.part 'a.cc:3: Skipped\\nneeds=gpu'
  skip t.part_of_a_rank '[1] a.cc:3: Skipped\\n[0] other words\\n[1] needs=gpu'
  count 0 '2 passed, 0 failed, 3 skipped'
  said '^This machine lacks a GPU: 1 tests are skipped$'
  skip t.granted needs=hosts 77
  skip t.silent 'not today' 77
  skip t.silent_part 'a.cc:3: Skipped\\nnot today'
  count 1 '2 passed, 3 failed, 3 skipped'
  said '^failed: dev: t\.granted \(it was skipped for want of hosts, which this machine has\)'
  said '^failed: dev: t\.silent \(it was skipped without a reason'
  said '^failed: dev: t\.silent_part \(a part of it was skipped for a reason of its own: not today\)'
  # A failure names the command that repeats it; a run of no test is one.
  printf 'add_test(t.never false)\n' >"$list"
  count 1 '0 passed, 1 failed, 0 skipped'
  said "^  repeat just it: ctest --test-dir $work/tests --output-on-failure -R \\\\\^t.never"
  : >"$list"
  count 1 '0 passed, 1 failed, 0 skipped'
  said '^failed: dev (ran no test|did not run)'
}

# What the probe finds, it can name; an unknown name is refused.
case_probe() {
  gives 0 bash "$root/scripts/probe.sh" two_cores localhost
  said '^two_cores +two cores: (yes|no: )'
  gives 0 env PATH=/nowhere /bin/bash -c 'exec /usr/bin/python3 "$1" --reasons valgrind' sh "$root/tests/support/machine.py"
  said "^valgrind	Valgrind \\(valgrind is not installed\\)"
  gives 2 bash "$root/scripts/probe.sh" abacus
  said 'unknown capability "abacus"'
}

# The version stands in the file VERSION alone.
case_version() {
  local version
  version=$(<"$root/VERSION")
  git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || {
    echo 'not tried: git says nothing about this source tree'
    return
  }
  # Tables say with which one they were measured.
  git -C "$root" grep -nIE "(^|[^0-9.])${version//./\\.}(\$|[^0-9.])" -- . ':!VERSION' ':!CHANGELOG.md' ':!docs/measurements' |
    grep -v "^[^:]*\.md:.*memspan $version" >"$work/out" || return 0
  fail "the version is repeated: $(cat "$work/out")"
}

# The README's line for the wheel, as it is pasted: a wheel that cannot be built is no success.
case_wheel_that_fails() {
  # shellcheck source=tests/support/readme.sh
  source "$root/tests/support/readme.sh"
  make_tree
  local line stranger
  line=$(line_of_readme 'bash scripts/build_wheel.sh')
  mkdir "$work/tree/dist"
  echo 'an old one' >"$work/tree/dist/memspan-0.0.1-cp311-cp311-linux_$(uname -m).whl"
  mapfile -t stranger < <(as_stranger)
  gives 1 "${stranger[@]}" bash -c "cd '$work/tree'; $line"
  said '^install_deps: '
  ! grep -q 'Successfully installed' "$work/out" || fail "something was installed: $(cat "$work/out")"
}

declare -F "case_$name" >/dev/null || fail "there is no case \"$name\""
"case_$name"
echo "passed: $name"
