#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formats all C and C++ of the project with clang-format 14.
#
#   format.sh           rewrites the files
#   format.sh --check   changes nothing, names the files that would change and fails if there are any
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

check=false
case ${1-} in
  '') ;;
  --check) check=true ;;
  -h | --help)
    sed -n '3,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
    exit 0
    ;;
  *)
    printf 'format: unknown option "%s"; allowed is --check\n' "$1" >&2
    exit 2
    ;;
esac

formatter=
for candidate in clang-format-14 clang-format; do
  if command -v "$candidate" >/dev/null && "$candidate" --version | grep -q 'version 14\.'; then
    formatter=$candidate
    break
  fi
done
if [[ -z $formatter ]]; then
  echo 'format: clang-format 14 is missing (scripts/install_deps.sh --dev)' >&2
  exit 1
fi

# What git knows and what is new; without git, the folders that hold code.
if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
  list() { git ls-files -z --cached --others --exclude-standard -- '*.h' '*.c' '*.cc' '*.cu' '*.cuh'; }
else
  list() { find src include python tools examples benchmarks tests \( -name '*.h' -o -name '*.c' -o -name '*.cc' -o -name '*.cu' -o -name '*.cuh' \) -print0; }
fi
files=()
while IFS= read -r -d '' file; do
  case $file in include/openshmem/shmem.h | include/openshmem/pshmem.h | include/memspan/openshmem_c11.h | include/memspan/openshmem_cxx.h | include/memspan/openshmem_types.h) continue ;; esac # generated
  [[ ! -f $file ]] || files+=("$file")
done < <(list)
((${#files[@]} > 0)) || exit 0

if ! $check; then
  exec "$formatter" -i -- "${files[@]}"
fi
if ! printf '%s\0' "${files[@]}" | xargs -0 -n 25 -P "$(nproc)" "$formatter" --dry-run --Werror --ferror-limit=1 --; then
  echo 'format: scripts/format.sh formats these files' >&2
  exit 1
fi
