#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What memfabric.py compares with: UCX's ucx_perftest from Debian, Mooncake's transfer engine from
# PyPI in a virtual environment.
#
#   install_rivals.sh [FOLDER]      (build/rivals)
#
# What cannot be installed is named, with the reason; the others are. memfabric.py leaves their cells
# empty. The exit code is 1 when one is missing.
set -uo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:-$root/build/rivals}
packages=(ucx-utils libibverbs1 librdmacm1 libnuma1 libcurl4 liburing2)
wheel=mooncake-transfer-engine-non-cuda==0.3.13.post1
missing=0

complain() {
  printf 'install_rivals: %s\n' "$1" >&2
  missing=1
}

for package in "${packages[@]}"; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' && continue
  as_root=()
  [[ $EUID == 0 ]] || as_root=(sudo -n)
  output=$("${as_root[@]}" apt-get install -y --no-install-recommends "$package" 2>&1) ||
    complain "$package: $(tail -n 1 <<<"$output")"
done

python=$folder/bin/python
if ! "$python" -c 'import mooncake.engine' 2>/dev/null; then
  # Its other requirements are for parts that are not used here.
  output=$({ python3 -m venv "$folder" && "$python" -m pip install --quiet --no-deps "$wheel" &&
    "$python" -c 'import mooncake.engine'; } 2>&1) || complain "Mooncake: $(tail -n 1 <<<"$output")"
fi

command -v ucx_perftest >/dev/null && echo "install_rivals: UCX, $(ucx_info -v 2>/dev/null | sed -n "1s/^# //p")"
"$python" -c 'import importlib.metadata as m; print("install_rivals: Mooncake", m.version("mooncake-transfer-engine-non-cuda"))' 2>/dev/null
exit "$missing"
