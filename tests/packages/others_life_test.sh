#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# others_life_test.sh RELEASE TREE: the .run packages and the wheel in the folder RELEASE, installed into an empty system,
# used, upgraded and removed there. TREE is the installed tree that the .run packages were made of, for those of a later
# version. Needs root, debootstrap and the distribution's servers.
set -euo pipefail

release=$(cd -- "$1" && pwd)
tree=$(cd -- "$2" && pwd)
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
version=$(<"$root/VERSION")
arch=$(uname -m)
later=99.0.1
# shellcheck source=tests/support/life_test.sh
source "$here/../support/life_test.sh"

run_package() { echo "/packages/SHMEM_$1_linux-$arch.run"; }
# The README's ring by the compiler wrapper of a version, which need not be the one installed last.
use_run() { # FOLDER OF THE VERSION, VERSION
  there bash -ec "source '$1/set_env.sh'; [[ \$(oshrun --version) == *' $2' ]]; memspan-info >/dev/null
    cd /root && oshcc -o ring ring.c && oshrun -n 4 --timeout 60 ./ring | sort"
  ring_printed 'the ring'
}
use_wheel() { # VERSION
  there sh -ec 'cd /root && env/bin/oshrun -n 2 --timeout 60 env/bin/python ring.py | sort'
  printed "Python's program" "PE 0 of 2 got 1, memspan $1" "PE 1 of 2 got 0, memspan $1"
}
# The same wheel with another version.
later_wheel() { # WHEEL
  local place=$work/wheel record
  python3 -m zipfile -e "$1" "$place"
  mv -- "$place/memspan-$version.dist-info" "$place/memspan-$later.dist-info"
  sed -i "s/^Version: .*/Version: $later/" "$place/memspan-$later.dist-info/METADATA"
  record=$place/memspan-$later.dist-info/RECORD
  sed -i -e "s#^memspan-$version.dist-info/#memspan-$later.dist-info/#" -e "s#^\(.*/METADATA\),.*#\1,,#" "$record"
  # zipfile keeps no modes, and the programs are programs; pip gives them from the archive.
  chmod 755 "$place"/memspan/bin/* "$place"/memspan/lib/*.so.0
  local name=${1##*/}
  (cd -- "$place" && python3 -c 'import shutil, sys; shutil.make_archive(sys.argv[1], "zip", ".")' "$work/later")
  mv -- "$work/later.zip" "$system/packages/${name/$version/$later}"
}

make_root "$system"
mkdir "$system/packages"
there apt-get update

# ---- the .run package, where there is only a compiler ----
there apt-get install -y --no-install-recommends gcc libc6-dev
program_of_readme shmem_init "$system/root/ring.c"
bash "$root/packaging/package.sh" --tree "$tree" --out "$work/later-run" --version "$later" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
cp -- "$release/SHMEM_${version}_linux-$arch.run" "$work/later-run/SHMEM_${later}_linux-$arch.run" "$system/packages/"
files_there >"$work/before"

there bash "$(run_package "$version")" --install
grep -qx 'SHMEM install success!' "$work/out" || fail "it said: $(cat "$work/out")"
use_run /usr/local/Ascend/shmem "$version"
echo 'passed: the .run package, install'
there bash "$(run_package "$later")" --install
[[ $(readlink "$system/usr/local/Ascend/shmem/latest") == "$later" ]] || fail 'the later version is not the latest'
use_run "/usr/local/Ascend/shmem/$version" "$version"
echo 'passed: the .run package, upgrade'
there bash "$(run_package "$later")" --uninstall
use_run /usr/local/Ascend/shmem "$version"
there bash "$(run_package "$version")" --uninstall
files_there | diff "$work/before" - || fail 'the .run packages left something'
echo 'passed: the .run package, uninstall'

# ---- the wheel, with the distribution's Python ----
there apt-get install -y --no-install-recommends python3-venv
tag=$(in_root "$system" python3 -c 'import sys; print(f"cp3{min(sys.version_info[1], 12)}")')
wheel=$(compgen -G "$release/memspan-$version-$tag-*_$arch.whl") || fail "there is no wheel $tag"
cp -- "$wheel" "$system/packages/"
later_wheel "$wheel"
cat >"$system/root/ring.py" <<'PYTHON'
import importlib.metadata
import struct

import shmem

shmem.shmem_init()
me, n = shmem.get_my_pe(), shmem.get_pe_count()
word = shmem.shmem_calloc(1, 8)
shmem.shmem_int64_p(word, me, (me + 1) % n)
shmem.shmem_barrier_all()
(got,) = struct.unpack("q", bytes(memoryview(word)[:8]))
print(f"PE {me} of {n} got {got}, memspan {importlib.metadata.version('memspan')}")
shmem.shmem_finalize()
PYTHON
there python3 -m venv /root/env
in_root "$system" sh -c 'find /root/env -type f ! -name "*.pyc" | sort' >"$work/before"
pip_there() { there /root/env/bin/pip --disable-pip-version-check --no-input "$@"; }

pip_there install --no-index "/packages/${wheel##*/}"
use_wheel "$version"
there sh -ec '/root/env/bin/memspan-info && /root/env/bin/python -m memspan && /root/env/bin/shmem-config --check'
echo 'passed: the wheel, install'
pip_there install --no-index --upgrade --find-links /packages memspan
use_wheel "$later"
echo 'passed: the wheel, upgrade'
pip_there uninstall -y memspan
in_root "$system" sh -c 'find /root/env -type f ! -name "*.pyc" | sort' | diff "$work/before" - || fail 'the wheel left something'
echo 'passed: the wheel, uninstall'
