#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install_test.sh BUILD LIBDIR CASE: users' programs against an installed tree. `setup` installs, moves
# the tree elsewhere (it must not know where it was) and leaves it for the other cases.
set -euo pipefail

build=$1
libdir=$2
name=$3
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
area=$build/tests/install
prefix="$area/moved tree"
work=$area/$name
# shellcheck source=tests/support/readme.sh
source "$here/../support/readme.sh"
rm -rf -- "$work"
mkdir -p -- "$work"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# What the build tree knows of the user's own installation; with_own_records COMMAND... keeps it.
records=(install_manifest.txt install_folders.txt install_prefix.txt)
with_own_records() {
  local file
  mkdir -p -- "$work/records"
  for file in "${records[@]}"; do [[ ! -f $build/$file ]] || mv -- "$build/$file" "$work/records/$file"; done
  "$@"
  for file in "${records[@]}"; do
    rm -f -- "$build/$file"
    [[ ! -f $work/records/$file ]] || mv -- "$work/records/$file" "$build/$file"
  done
}

install_into() {
  cmake --install "$build" --prefix "$1" >"$work/log" || fail "cmake --install: $(tail -n 3 "$work/log")"
}

uninstall() {
  cmake --build "$build" --target uninstall >"$work/log" || fail "$(tail -n 3 "$work/log")"
}

# ring PROGRAM: two processes under the installed launcher.
ring() {
  "$prefix/bin/oshrun" -n 2 --timeout 30 "$1" | sort >"$work/out" || fail "$1 failed"
  cmp -s "$work/out" <(printf 'PE 0 of 2 got 1\nPE 1 of 2 got 0\n') || fail "$1 printed: $(cat "$work/out")"
}

case_setup() {
  rm -rf -- "$prefix"
  with_own_records install_into "$work/first place"
  mv -- "$work/first place" "$prefix"
  local file
  for file in bin/oshrun bin/oshcc bin/oshc++ bin/shmemcc bin/shmemc++ bin/shmemrun bin/memspan-info bin/memspan-perf \
    bin/memspan-kernels bin/oshcxx bin/oshCC share/doc/memspan/LICENSE share/doc/memspan/VERSION \
    share/man/man1/{oshrun,shmemrun,oshcc,oshc++,oshCC,memspan-info,memspan-perf,memspan-store,memspan-kernels,memspan-top,memspan-explain}.1 \
    share/bash-completion/completions/{oshrun,memspan-store,memspan-info,memspan-perf,memspan-top,memspan-explain} \
    include/shmem.h include/shmemx.h include/pshmem.h "$libdir/libmemspan.so" "$libdir/libmemspan_tls.so" "$libdir/libshmem.so" \
    "$libdir/libmf_smem.so" "$libdir/libmf_hybm_core.so" include/smem/host/smem.h include/hybm/hybm_def.h \
    include/shmem_api.h include/aclshmem.h include/aclshmem/shmem.h include/memspan/stream.h include/memspan/kernel.h include/memspan/kernel_calls.h include/memspan/kernel_host.h include/memspan/kernel_types.h include/memspan/kernel_state.h include/memspan/launch.h include/memspan/space_calls.h include/smem/device/lowlevel/smem_shm_aicore_base_api.h include/aclshmem/device/shmem_device.h include/aclshmem/device/shmem_device_aliases.h include/aclshmem/device_simt/team/shmem_device_simt_team.h include/cann/acl/acl.h include/cann/kernel_operator.h; do
    [[ -e $prefix/$file ]] || fail "$file is not installed"
  done
  [[ ! -e $build/lib/libmemspan_ucx.so || -e $prefix/$libdir/libmemspan_ucx.so ]] || fail "the module over UCX is not installed"
  [[ ! -e $build/lib/libmemspan_etcd.so || -e $prefix/$libdir/libmemspan_etcd.so ]] || fail "the module for etcd is not installed"
  # The place of installation must appear in no text file: the tree can be moved.
  ! grep -rlIF -- "$work/first place" "$prefix" >"$work/found" || fail "knows its place: $(cat "$work/found")"
}

case_cmake() {
  { cmake -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/build"; } \
    >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"
  local program
  for program in ring_c ring_cc early_ring cann_ring kernel_ring; do ring "$work/build/$program"; done
  "$work/build/host_store" >"$work/out" || fail "host_store: $(cat "$work/out")"
}

case_cmake_other_major_version() {
  mkdir "$work/project"
  printf 'cmake_minimum_required(VERSION 3.19)\nproject(x LANGUAGES NONE)\nfind_package(memspan 99 REQUIRED)\n' \
    >"$work/project/CMakeLists.txt"
  ! cmake -S "$work/project" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 ||
    fail "version 99 was found"
}

case_pkg_config() {
  local package flags
  for package in memspan shmem openshmem; do
    eval "flags=($(PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig" pkg-config --cflags --libs "$package"))"
    "${CC:-cc}" "$here/consumer/ring.c" -o "$work/ring_$package" "${flags[@]}"
    LD_LIBRARY_PATH="$prefix/$libdir" ring "$work/ring_$package"
  done
  # package_builds PACKAGE SOURCE: as $work/SOURCE.
  package_builds() {
    eval "flags=($(PKG_CONFIG_PATH="$prefix/$libdir/pkgconfig" pkg-config --cflags --libs "$1"))"
    "${CC:-cc}" "$here/consumer/$2.c" -o "$work/$2" "${flags[@]}"
  }
  local program
  for program in early_ring cann_ring; do
    package_builds aclshmem "$program"
    LD_LIBRARY_PATH="$prefix/$libdir" ring "$work/$program"
  done
  package_builds smem host_store
  LD_LIBRARY_PATH="$prefix/$libdir" "$work/host_store" >"$work/out" || fail "host_store: $(cat "$work/out")"
}

case_oshcc() {
  local wrapper
  for wrapper in oshcc shmemcc; do
    "$prefix/bin/$wrapper" -std=c11 -Wall -Wextra -Werror "$here/consumer/ring.c" -o "$work/$wrapper"
    ring "$work/$wrapper"
  done
  # In two steps, and as a makefile would ask for the flags.
  "$prefix/bin/oshcc" -c "$here/consumer/ring.c" -o "$work/ring.o"
  "$prefix/bin/oshcc" "$work/ring.o" -o "$work/two steps"
  ring "$work/two steps"
  eval "$("$prefix/bin/oshcc" -show "$here/consumer/ring.c" -o "$work/shown")"
  ring "$work/shown"
  eval "cc '$here/consumer/ring.c' -o '$work/flags' $("$prefix/bin/oshcc" -showme:compile) $("$prefix/bin/oshcc" -showme:link)"
  ring "$work/flags"
}

# What a makefile or a test suite asks the wrapper.
case_oshcc_asked() {
  local wrapper=$prefix/bin/oshcc library=$prefix/$libdir word
  # ask WORD EXPECTED: the wrapper's answer, unquoted. With one dash and with two.
  ask() {
    for word in "$1" "-$1"; do
      eval "set -- \"\$1\" \"\$2\" $("$wrapper" "$word")"
      [[ ${*:3} == "$2" ]] || fail "oshcc $word says: ${*:3}"
    done
  }
  ask -showme:command cc
  ask -showme:compile "-I$prefix/include"
  ask -showme:link "-L$library -Wl,-rpath,$library -lshmem"
  ask -showme:incdirs "$prefix/include"
  ask -showme:libdirs "$library"
  ask -showme:libs shmem
  ask -compile-info "cc -I$prefix/include"
  ask -link-info "cc -L$library -Wl,-rpath,$library -lshmem"
  ask -showme "cc -I$prefix/include -L$library -Wl,-rpath,$library -lshmem"
  "$wrapper" -showme:version | grep -q "oshcc (memspan) $(cat "$prefix/share/doc/memspan/VERSION")" || fail "no version"
  grep -q '^cc -I.* ring.c -o ring -lshmem$' <<<"$("$wrapper" ring.c -o ring -show)" || fail "-show after other words"
  # Ours is found before another library's, in one step and in two.
  mkdir -p "$work/other"
  echo '#error another shmem.h' | tee "$work/other/shmem.h" >"$work/other/pshmem.h"
  "$wrapper" -I"$work/other" "$here/consumer/ring.c" -o "$work/ours" && ring "$work/ours"
  "$wrapper" -I"$work/other" -c "$here/consumer/ring.c" -o "$work/ours.o"
  ! "$wrapper" -showme:nonsense >"$work/out" 2>&1 || fail "-showme:nonsense is accepted"
  grep -q 'allowed is command' "$work/out" || fail "-showme:nonsense: $(cat "$work/out")"
  # The wrapper's own lines, then the compiler's.
  "$wrapper" --help >"$work/out"
  grep -q '^Usage: oshcc ' <<<"$(head -n 1 "$work/out")" || fail "--help does not begin with a line of ours"
  grep -q -e '-shared\|-fsyntax-only\|-dumpversion' "$work/out" || fail "--help lacks the compiler's own"
  # Nothing to link: no complaint about a missing main.
  "$wrapper" -v 2>"$work/out" || fail "-v alone: $(cat "$work/out")"
  # -E belongs to the linker here, and a program comes out.
  "$wrapper" -Xlinker -E "$here/consumer/ring.c" -o "$work/exported"
  ring "$work/exported"
  "$wrapper" -E "$here/consumer/ring.c" >"$work/out"
  grep -q shmem_init "$work/out" || fail "-E does not preprocess"
}

# A program finds the library in another terminal, where nothing was sourced.
case_run_path() {
  local wrapper
  for wrapper in oshcc oshc++ oshcxx oshCC; do
    "$prefix/bin/$wrapper" "$here/consumer/ring.c" -o "$work/$wrapper"
    env -i PATH=/usr/bin:/bin "$work/$wrapper" >"$work/out" || fail "$wrapper: $(cat "$work/out")"
    grep -qx 'PE 0 of 1 got 0' "$work/out" || fail "$wrapper: it printed $(cat "$work/out")"
  done
}

case_oshcxx() {
  local wrapper
  for wrapper in oshc++ shmemc++; do
    "$prefix/bin/$wrapper" -std=c++20 -Wall -Wextra -Werror "$here/consumer/ring.cc" -o "$work/$wrapper"
    ring "$work/$wrapper"
  done
}

# Other cases may be reading it.
write_set_env() { # FOLDER
  sed -e "s|@HOME@|$1|" -e "s|@LIBDIR@|$libdir|g" "$here/../../packaging/set_env.sh.in" >"$work/set_env.sh"
  mv -- "$work/set_env.sh" "$1/set_env.sh"
}

case_set_env() {
  write_set_env "$prefix"
  local shell
  for shell in bash sh; do
    # shellcheck disable=SC2016  # expanded by the inner shell
    "$shell" -euc '. "$1/set_env.sh" && . "$1/set_env.sh"
      test "$SHMEM_HOME_PATH" = "$1" && test "$MEMFABRIC_HYBRID_HOME_PATH" = "$1"
      test -e "$MEMFABRIC_HYBRID_EXTEND_LIB_PATH/libmf_smem.so"
      case $LD_LIBRARY_PATH in *"$1/'"$libdir"':$1"*) exit 1;; esac
      test "$(command -v oshrun)" = "$1/bin/oshrun"' "$shell" "$prefix" || fail "set_env.sh in $shell"
  done
}

# typed LINE: what a user types in the folder of the program; sorted into $work/out.
typed() { (cd -- "$work" && PATH=$prefix/bin:$PATH timeout 30 bash -euc "$1") | sort >"$work/out" || fail "$1"; }

# printed WORDS LINE: the line printed what the page shows behind the block with the words.
printed() { cmp -s "$work/out" <(output_of_readme "$1") || fail "$2 printed: $(cat "$work/out")"; }

# The README's program in C, by its command, with its output.
case_readme() {
  local line
  program_of_readme shmem_init "$work/ring.c"
  line=$(line_of_readme 'oshcc -o ring')
  typed "$line"
  printed 'oshcc -o ring' "$line"
}

# commands_of PAGE PROGRAM FILE: compiles and runs the page's program that has the words PROGRAM by the page's own block of
# commands, which begins with `source install/set_env.sh`.
commands_of() {
  local readme=$here/../../$1
  program_of_readme "$2" "$work/$3"
  sed -i "s/:8570/:$((10000 + RANDOM % 20000))/" "$work/$3"
  awk '/^```/ { inside = 0 } /^source install\/set_env.sh/ { inside = 1 } inside { print }' "$readme" >"$work/commands"
  [[ -s $work/commands ]] || fail "$1 has no commands after set_env.sh"
  (cd -- "$work" && timeout 60 bash -euo pipefail ./commands) >"$work/out" 2>"$work/err" ||
    fail "the commands of $1: $(cat "$work/out" "$work/err")"
}

case_documents() {
  write_set_env "$prefix"
  ln -s -- "$prefix" "$work/install" # pkg-config's answers are not quoted on the page: no space in the path
  commands_of docs/big_memory.md smem_bm_init pool.c
  cmp -s <(sort "$work/out") <(printf 'rank %d has "hello from rank %d"\n' 0 1 1 0) || fail "the pool printed: $(cat "$work/out")"
  commands_of docs/kernels.md memspan_stream_create shift.cc
  cmp -s <(sort "$work/out") <(printf 'PE %d got %d and %d\n' 0 1 1 1 0 0) || fail "the kernel printed: $(cat "$work/out")"
}

# Those of docs/start.md: the ring and the pool.
case_start() {
  local readme=$here/../../docs/start.md line start
  program_of_readme shmem_init "$work/ring.c"
  typed "$(line_of_readme 'oshcc -o ring')"
  for start in 'oshrun -n 4 ./ring' 'oshrun -n 4 --simulate-hosts 2 ./ring'; do
    line=$(line_of_readme "$start")
    typed "$line"
    printed shmem_init "$line"
  done

  local port=$((10000 + RANDOM % 20000)) end=$((SECONDS + 30))
  program_of_readme smem_bm_init "$work/pool.c"
  sed -i "s/:8570/:$port/" "$work/pool.c"
  "${CC:-cc}" -o "$work/pool" "$work/pool.c" -I"$prefix/include" -L"$prefix/$libdir" -lmf_smem
  export LD_LIBRARY_PATH=$prefix/$libdir
  # The first process becomes rank 0, and stays until its input ends.
  exec {input}> >(stdbuf -oL timeout 60 "$work/pool" >"$work/first" 2>&1)
  until grep -sqx 'press enter to end' "$work/first"; do
    ((SECONDS < end)) || fail "the first of the pool: $(cat "$work/first")"
  done
  timeout 60 "$work/pool" </dev/null >"$work/second" 2>&1 || fail "the second: $(cat "$work/second")"
  exec {input}>&-
  grep -qx 'hello from rank 0' "$work/second" || fail "the second of the pool printed: $(cat "$work/second")"
}

# The commands of skills/, as an assistant types them after `source set_env.sh`; a block of text behind one is what it prints.
case_skills() {
  write_set_env "$prefix"
  local root=$here/../.. page block ran=0
  for page in skills/use.md skills/port.md skills/debug.md; do
    mkdir -p "$work/$page"
    cd -- "$work/$page"
    awk '/^<!-- run by: tests\/install\/install_test.sh -->$/ { marked = 1; next }
      /^```$/ { to = ""; next }
      /^```sh$/ && marked { to = sprintf("%d.sh", ++n); marked = 0; next }
      /^```text$/ && n { to = n ".text"; next }
      to != "" { print > to }' "$root/$page"
    for block in *.sh; do
      # shellcheck disable=SC2016  # expanded by the inner shell
      timeout 120 bash -euo pipefail -c 'source "$1/set_env.sh" && source "./$2"' bash "$prefix" "$block" >out 2>err ||
        fail "$page, block ${block%.sh}: $(cat "$block" out err)"
      [[ ! -e ${block%.sh}.text ]] || cmp -s out "${block%.sh}.text" || fail "$page, block ${block%.sh} printed: $(cat out)"
      ran=$((ran + 1))
    done
  done
  ((ran == $(grep -h '^<!-- run by: ' "$root"/skills/*.md | wc -l))) || fail "only $ran blocks of skills/ ran"
}

# The lines of MemFabric's documents, as a user has them after `source set_env.sh`.
case_memfabric() {
  write_set_env "$prefix"
  (
    # shellcheck disable=SC1091  # written a line before
    source "$prefix/set_env.sh"
    "${CC:-cc}" "$here/consumer/host_store.c" -o "$work/host_store" \
      -I"${MEMFABRIC_HYBRID_HOME_PATH}/$(arch)-linux/include/smem/host" \
      -L"${MEMFABRIC_HYBRID_HOME_PATH}/$(arch)-linux/lib64" -lmf_smem
    "$work/host_store" >"$work/out"
  ) || fail "a program built with MemFabric's lines: $(cat "$work/out")"
  grep -qx 'hosts a store' "$work/out" || fail "it printed: $(cat "$work/out")"
}

# Programs that load the library by its path know it neither when they are linked nor by LD_LIBRARY_PATH.
case_memfabric_loaded() {
  "${CC:-cc}" "$here/consumer/load.c" -o "$work/load" -ldl
  env -u LD_LIBRARY_PATH MEMFABRIC_HYBRID_HOME_PATH="$prefix" \
    "$work/load" "$prefix/$(arch)-linux/lib64/libmf_smem.so" >"$work/out" || fail "$(cat "$work/out")"
}

case_info() {
  "$prefix/bin/memspan-info" >"$work/out"
  grep -q '^transport .*mapped' "$work/out" || fail "memspan-info names no transport: $(cat "$work/out")"
  "$prefix/bin/memspan-perf" ping-pong -n 2 -r 1 --samples 20 --seconds 0.01 >"$work/out" || fail "memspan-perf: $(cat "$work/out")"
  grep -q '^ping-pong: ' "$work/out" || fail "memspan-perf measured nothing: $(cat "$work/out")"
  # What is typed wrongly is said on stderr, and is no success.
  local program word code
  for program in memspan-info memspan-perf memspan-store memspan-kernels memspan-top memspan-explain oshrun; do
    for word in -hosts --nonsense; do
      code=0
      "$prefix/bin/$program" "$word" >"$work/out" 2>"$work/err" || code=$?
      [[ $code == 2 && ! -s $work/out ]] || fail "$program $word returned $code: $(cat "$work/out")"
      grep -q "; see $program --help" "$work/err" || fail "$program $word said: $(cat "$work/err")"
    done
  done
}

# fresh: into a folder that is not there; beside: into one where others have something.
install_and_uninstall() {
  install_into "$work/deep/tree"
  install_into "$work/deep/tree" # a second time changes nothing
  write_set_env "$work/deep/tree"
  uninstall
  [[ ! -e $work/deep ]] || fail "left behind: $(find "$work/deep")"

  mkdir -p -- "$work/beside"/{bin,share/man,include/other}
  echo theirs >"$work/beside/include/other/file.h"
  find "$work/beside" | sort >"$work/before"
  install_into "$work/beside"
  uninstall
  find "$work/beside" | sort >"$work/after"
  cmp -s "$work/before" "$work/after" || fail "not as before: $(diff "$work/before" "$work/after")"

  ! cmake --build "$build" --target uninstall >"$work/log" 2>&1 || fail "uninstalled what is not there"
}

case_uninstall() { with_own_records install_and_uninstall; }

# Each option that the help knows is in the manual page and in the completion.
case_manual() {
  local pages=$prefix/share/man/man1 program option word
  for program in oshrun memspan-store memspan-info memspan-perf memspan-top memspan-explain; do
    "$prefix/bin/$program" --help >"$work/help"
    for option in $(grep -Eo -- '(^|[ ,])--?[a-z][a-z-]+' "$work/help" | tr -d ' ,' | sort -u); do
      grep -qF -e "$option" <<<"$(sed 's/\\//g' "$pages/$program.1")" || fail "$program.1 does not have $option"
      grep -qF -e "$option" "$prefix/share/bash-completion/completions/$program" ||
        fail "the completion of $program does not have $option"
    done
  done
  for program in oshrun oshcc memspan-info memspan-perf memspan-store memspan-kernels memspan-top memspan-explain; do
    grep -q "memspan $(cat "$prefix/share/doc/memspan/VERSION")" "$pages/$program.1" || fail "$program.1 has no version"
    if ! command -v man >/dev/null; then continue; fi
    man --warnings -l "$pages/$program.1" >"$work/text" 2>"$work/warnings" || fail "man cannot show $program.1"
    [[ ! -s $work/warnings ]] || fail "$program.1: $(cat "$work/warnings")"
  done
}

# complete WORDS...: what bash offers for the last of them.
offered() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _memspan_oshrun && printf "%s\n" "${COMPREPLY[@]}"' bash "$prefix/share/bash-completion/completions/oshrun" "$@"
}

case_completion() {
  [[ $(offered oshrun --ta) == --tag-output ]] || fail "no --tag-output"
  [[ $(offered oshrun -n 2 --output l) == live ]] || fail "no live"
  [[ $(offered oshrun -n 2 prog : --keep) == --keep-going ]] || fail "no option of a second program"
  [[ -z $(offered oshrun -n 2 prog --keep) ]] || fail "an option of ours among the program's arguments"
  grep -qx true <<<"$(offered oshrun -n 2 tru)" || fail "no programs"
}

declare -F "case_$name" >/dev/null || fail "there is no case \"$name\""
"case_$name"
echo "passed: $name"
