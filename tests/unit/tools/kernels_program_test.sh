#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kernels_program_test.sh MEMSPAN_KERNELS COMPILER ROOT: what memspan-kernels does with the compiler's calls.
set -euo pipefail
tool=$1 compiler=$2 root=$3
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd "$work"

fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}
include=(-std=c++17 -I"$root/include/aclshmem" -I"$root/include/cann")
cat >kernel.cpp <<'SOURCE'
#include "kernel_operator.h"
#include "numbers.h"
extern "C" __global__ __aicore__ void fill(GM_ADDR to, int value) {
  __ubuf__ int* ub = (__ubuf__ int*)(64);
  ub[0] = value + EXTRA;
  *((__gm__ int*)to) = *(__ubuf__ int*)(64);
}
void launch(void* stream, uint8_t* to) { fill<<<4, nullptr, stream>>>(to, NUMBER); }
SOURCE
echo '#define NUMBER 3' >numbers.h

# Dependencies are the source's, and nothing is left beside the object.
"$tool" "$compiler" "${include[@]}" -DEXTRA=1 -I. -MD -MF kernel.d -c kernel.cpp -o out.o
[[ -s out.o ]] || fail 'there is no object'
grep -q '^out.o:' kernel.d || fail "dependencies of another file: $(head -1 kernel.d)"
grep -q 'numbers.h' kernel.d || fail 'a header is no dependency'
[[ $(echo *) == 'kernel.cpp kernel.d numbers.h out.o' ]] || fail "left behind: $(echo *)"
"$tool" "$compiler" "${include[@]}" -DEXTRA=1 -c kernel.cpp
[[ -s kernel.o ]] || fail 'without -o there is no kernel.o'

# Mistakes are told with the place in the source.
sed -i 's/value + EXTRA/value + missing/' kernel.cpp
code=0
"$tool" "$compiler" "${include[@]}" -DEXTRA=1 -c kernel.cpp -o out.o 2>err || code=$?
[[ $code != 0 ]] || fail 'a mistake was compiled'
grep -q 'kernel.cpp:5:.*missing' err || fail "the mistake is said to be elsewhere: $(cat err)"
sed -i 's/(to, NUMBER)/(to)/; s/missing/1/' kernel.cpp
code=0
"$tool" "$compiler" "${include[@]}" -c kernel.cpp -o out.o 2>err || code=$?
[[ $code != 0 ]] || fail 'a launch with an argument too few was compiled'
grep -q 'a launch gives as many arguments as the kernel takes' err || fail "the launch is said: $(cat err)"

# What is no compilation goes to the compiler; so does its end.
"$tool" "$compiler" --version | grep -q . || fail 'the compiler was not asked for its version'
code=0
"$tool" "$compiler" missing.o -o out 2>err || code=$?
[[ $code != 0 ]] || fail 'a failed link is a success'
code=0
"$tool" ./no-compiler -c kernel.cpp 2>err || code=$?
[[ $code == 1 ]] || fail "without a compiler it ended with $code"
grep -q '^memspan-kernels: cannot run "./no-compiler": No such file' err || fail "it says: $(cat err)"
for wrong in '' --colour; do
  code=0
  "$tool" ${wrong:+"$wrong"} 2>err || code=$?
  [[ $code == 2 ]] || fail "\"$wrong\" ended with $code"
  grep -q 'see memspan-kernels --help' err || fail "it says: $(cat err)"
done
"$tool" --help | grep -q '^Usage: memspan-kernels' || fail 'there is no help'
"$tool" --version | grep -q '^memspan-kernels (memspan) [0-9]' || fail 'there is no version'
