#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the documentation as one site, in build/site: docs/, the READMEs, the reference from the
# headers and the Python packages, and every message with its remedy.
#
#   site.sh [--out FOLDER]
#
#   --out FOLDER   where the site is written (build/site)
#
# It is strict: a warning, a dead link (also within a page) or a page that is in no menu is a failure.
# The site is opened from its files, without a server and without a network. The first run takes its
# tools from PyPI into build/site-env.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
cd -- "$root"

out=$root/build/site
while (($# > 0)); do
  case $1 in
    --out)
      out=${2-}
      [[ -n $out ]] || { echo 'site: --out needs a folder' >&2; exit 2; }
      [[ $out == /* ]] || out=$OLDPWD/$out
      shift
      ;;
    -h | --help)
      sed -n '3,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *)
      printf 'site: unknown option "%s"; allowed is --out FOLDER\n' "$1" >&2
      exit 2
      ;;
  esac
  shift
done

python=$(bash scripts/python_env.sh --site)
export PYTHONDONTWRITEBYTECODE=1 NO_MKDOCS_2_WARNING=1
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
if ! "$python" -m mkdocs build --strict --clean --config-file tools/site/mkdocs.yml --site-dir "$out" >"$log" 2>&1; then
  grep -v '^INFO' -- "$log" >&2
  echo 'site: FAIL' >&2
  exit 1
fi
"$python" tools/site/check.py "$out"
printf 'site: %s\n' "$out/index.html"
