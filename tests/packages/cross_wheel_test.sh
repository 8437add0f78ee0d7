#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cross_wheel_test.sh WHEEL: the wheel for aarch64 (scripts/cross_wheel.sh) in the distribution's Python for aarch64,
# under QEMU's user mode: what is in it, and a job of two processes.
set -euo pipefail

wheel=$1
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
version=$(<"$root/VERSION")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
python=$(bash "$root/scripts/cross_wheel.sh" --python-only)
python3 -m zipfile -e "$wheel" "$work/packages"
# zipfile forgets what may be run.
chmod 755 "$work"/packages/memspan/bin/*

found=0
while IFS= read -r -d '' file; do
  [[ $(head -c 4 -- "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
  found=$((found + 1))
  readelf -h "$file" | grep -q 'Machine: *AArch64' || fail "${file#"$work/packages/"} is for another processor"
  ! grep -qF -- "$root/" "$file" || fail "${file#"$work/packages/"} knows $root"
done < <(find "$work/packages" -type f -print0)
((found >= 7)) || fail "there are $found binaries in it"
for file in _core/__init__.pyi _core/shmem.pyi include/shmem.h lib/libmemspan.so.0 bin/oshrun; do
  [[ -f $work/packages/memspan/$file ]] || fail "there is no memspan/$file in it"
done

cat >"$work/job.py" <<'PYTHON'
import platform

import memspan
import mf_smem
import shmem

shmem.shmem_init()
me, n = shmem.get_my_pe(), shmem.get_pe_count()
counter = shmem.shmem_calloc(1, 8)
shmem.shmem_uint64_p(counter, 100 + me, (me + 1) % n)
shmem.shmem_barrier_all()
print(f"PE {me} of {n} got {shmem.shmem_uint64_g(counter, me)}, {platform.machine()}, memspan {memspan.__version__}")
shmem.shmem_finalize()
PYTHON
PYTHONPATH=$work/packages qemu-aarch64 "$work/packages/memspan/bin/oshrun" -n 2 --timeout 120 "$python" "$work/job.py" | sort >"$work/out" ||
  fail "the job failed: $(cat "$work/out")"
printf 'PE %d of 2 got %d, aarch64, memspan %s\n' 0 101 "$version" 1 100 "$version" | diff - "$work/out" >&2 || fail 'the job printed something else'
echo "passed: ${wheel##*/}"
