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
rm -rf -- "$work"
mkdir -p -- "$work"

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}

# Installs into $1 without losing the manifest of the user's own installation.
install_into() {
  local manifest=$build/install_manifest.txt
  if [[ -f $manifest ]]; then cp -- "$manifest" "$area/manifest.saved"; fi
  cmake --install "$build" --prefix "$1" >"$work/log" || fail "cmake --install: $(tail -n 3 "$work/log")"
  if [[ -f $manifest ]]; then mv -- "$manifest" "$work/manifest"; fi
  if [[ -f $area/manifest.saved ]]; then mv -- "$area/manifest.saved" "$manifest"; fi
}

# ring PROGRAM: two processes under the installed launcher.
ring() {
  "$prefix/bin/oshrun" -n 2 --timeout 30 "$1" | sort >"$work/out" || fail "$1 failed"
  cmp -s "$work/out" <(printf 'PE 0 of 2 got 1\nPE 1 of 2 got 0\n') || fail "$1 printed: $(cat "$work/out")"
}

case_setup() {
  rm -rf -- "$prefix"
  install_into "$work/first place"
  mv -- "$work/first place" "$prefix"
  local file
  for file in bin/oshrun bin/oshcc bin/oshc++ bin/shmemcc bin/shmemc++ bin/shmemrun bin/memspan-info \
    include/shmem.h include/shmemx.h include/pshmem.h "$libdir/libmemspan.so" "$libdir/libmemspan_tls.so" "$libdir/libshmem.so" \
    "$libdir/libmf_smem.so" "$libdir/libmf_hybm_core.so" include/smem/host/smem.h include/hybm/hybm_def.h \
    include/memspan/stream.h; do
    [[ -e $prefix/$file ]] || fail "$file is not installed"
  done
  # The place of installation must appear in no text file: the tree can be moved.
  ! grep -rlIF -- "$work/first place" "$prefix" >"$work/found" || fail "knows its place: $(cat "$work/found")"
}

case_cmake() {
  { cmake -S "$here/consumer" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" && cmake --build "$work/build"; } \
    >"$work/log" 2>&1 || fail "$(tail -n 20 "$work/log")"
  ring "$work/build/ring_c"
  ring "$work/build/ring_cc"
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

case_oshcxx() {
  local wrapper
  for wrapper in oshc++ shmemc++; do
    "$prefix/bin/$wrapper" -std=c++20 -Wall -Wextra -Werror "$here/consumer/ring.cc" -o "$work/$wrapper"
    ring "$work/$wrapper"
  done
}

# Other cases may be reading it.
write_set_env() {
  sed -e "s|@HOME@|$prefix|" -e "s|@LIBDIR@|$libdir|g" "$here/../../packaging/set_env.sh.in" >"$work/set_env.sh"
  mv -- "$work/set_env.sh" "$prefix/set_env.sh"
}

case_set_env() {
  write_set_env
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

# program_of_readme WORDS FILE: the C program of the README that has the words.
program_of_readme() {
  awk -v words="$1" '
    /^```c$/ { program = ""; inside = 1; next }
    /^```$/ { if (inside && index(program, words)) { printf "%s", program; exit }; inside = 0 }
    inside { program = program $0 "\n" }' "$here/../../README.md" >"$2"
  [[ -s $2 ]] || fail "the README has no program with $1"
}

# What the README shows first, as it stands there.
case_readme() {
  program_of_readme shmem_init "$work/ring.c"
  "$prefix/bin/oshcc" -o "$work/ring" "$work/ring.c"
  "$prefix/bin/oshrun" -n 4 --timeout 30 "$work/ring" | sort >"$work/out" || fail "the ring failed"
  cmp -s "$work/out" <(for pe in 0 1 2 3; do printf 'PE %d of 4 got %d\n' $pe $((100 + (pe + 3) % 4)); done) ||
    fail "the ring printed: $(cat "$work/out")"

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

# The lines of MemFabric's documents, as a user has them after `source set_env.sh`.
case_memfabric() {
  write_set_env
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
}

case_uninstall() {
  local manifest=$build/install_manifest.txt
  install_into "$work/tree"
  if [[ -f $manifest ]]; then cp -- "$manifest" "$work/manifest.user"; fi
  cp -- "$work/manifest" "$manifest"
  cmake --build "$build" --target uninstall >"$work/log" || fail "$(tail -n 3 "$work/log")"
  if [[ -f $work/manifest.user ]]; then mv -- "$work/manifest.user" "$manifest"; fi
  local rest
  rest=$(find "$work/tree" ! -type d && find "$work/tree" -name 'host' && find "$work/tree" -name '*-linux')
  [[ -z $rest ]] || fail "left behind: $rest"
}

declare -F "case_$name" >/dev/null || fail "there is no case \"$name\""
"case_$name"
echo "passed: $name"
