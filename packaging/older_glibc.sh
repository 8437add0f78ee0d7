#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a folder to link against, so that programs run on systems with an older glibc than this one: its libraries as
# lists of symbols, and how its programs start. Zig, which knows the symbols of each version, makes them.
#
#   older_glibc.sh ZIG VERSION ARCH FOLDER
#
#   ZIG      an interpreter of Python that has ziglang
#   VERSION  of glibc (2.28)
#   ARCH     x86_64 or aarch64
#   FOLDER   to make; where it is already, nothing happens. It goes to the linker with -L and -B
set -euo pipefail

zig=$1 version=$2 arch=$3 folder=$4
if [[ -f $folder/libc.so ]]; then exit 0; fi
made=$(mktemp -d)
trap 'rm -rf -- "$made"' EXIT
printf 'int main(void) { return 0; }\n' >"$made/main.c"
env ZIG_GLOBAL_CACHE_DIR="$made/cache" ZIG_LOCAL_CACHE_DIR="$made/cache" "$zig" -m ziglang cc \
  -target "$arch-linux-gnu.$version" -pie "$made/main.c" -o "$made/main" -lpthread -ldl -lrt -lm
mkdir -- "$made/folder"
for file in lib{c.so.6,m.so.6,dl.so.2,pthread.so.0,rt.so.1} libc_nonshared.a Scrt1.o; do
  find "$made/cache" -name "$file" -exec cp -- {} "$made/folder/" \;
  [[ -f $made/folder/$file ]] || { printf 'older_glibc: Zig made no %s\n' "$file" >&2 && exit 1; }
done
for file in "$made"/folder/lib{m,dl,pthread,rt}.so.*; do ln -s -- "${file##*/}" "${file%.so.*}.so"; done
loader=$(basename -- "$(readelf --wide --program-headers -- "$made/main" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')")
# As glibc's own libc.so: what is not in the shared library is in the other, and threads' variables need the loader.
printf 'GROUP ( libc.so.6 libpthread.so.0 libdl.so.2 libc_nonshared.a AS_NEEDED ( %s ) )\n' "$loader" >"$made/folder/libc.so"
rm -rf -- "$folder"
mkdir -p -- "$(dirname -- "$folder")"
mv -- "$made/folder" "$folder"
