#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debs_quick_test.sh BUILD: makes the Debian packages, but for Python's, and their bill of materials, and looks at them
# (debs_test.sh, sbom_test.py). Nothing is installed; debs_life_test.sh does that.
set -euo pipefail

build=$1
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
area=$build/tests/debs
rm -rf -- "$area"
mkdir -p -- "$area"
log=$area/log

bash "$root/packaging/deb.sh" --without-python --build "$build/deb" --out "$area/packages" >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  exit 1
}
bash "$here/debs_test.sh" "$area/packages" "$build/tests/install/moved tree"
python3 "$root/packaging/sbom.py" --build "$build/deb" --build "$build" --artefacts "$area/packages" --out "$area/memspan.spdx.json"
python3 "$here/sbom_test.py" "$area/packages" "$area/memspan.spdx.json"
