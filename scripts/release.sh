#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes everything that is shipped, of the last commit, in one folder with its checksums: the .run and the Debian
# packages, a wheel for each Python, the sdist and the bill of materials (docs/packages.md).
#
#   release.sh [--out FOLDER] [--work FOLDER] [--python PYTHON]... [--this-processor]
#
#   --out FOLDER      where it goes (dist/VERSION); it must be empty or not there
#   --work FOLDER     where it is built (a new one in /var/tmp, which is removed in the end)
#   --python PYTHON   interpreters whose wheels are made; not given, each of 3.9 to 3.12 that is found
#   --this-processor  no wheels for aarch64; by default they are also made, on a machine of another processor
# The same commit gives the same bytes, wherever and whenever it is built with the same compilers and libraries.
# The time in the files is that of the commit, or $SOURCE_DATE_EPOCH. Changes that are not committed are not included.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
out=
work=
pythons=()
others=(aarch64)
[[ $(uname -m) != aarch64 ]] || others=()

fail() {
  printf 'release: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --out | --work)
      (($# > 1)) || fail "$1 needs a folder"
      declare "${1#--}=$2"
      shift
      ;;
    --python)
      [[ -n ${2-} ]] && "$2" -c '' || fail "--python is \"${2-}\", which is no interpreter"
      pythons+=("$2")
      shift
      ;;
    --this-processor) others=() ;;
    --help | -h)
      sed -n '3,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --out, --work, --python and --this-processor" ;;
  esac
  shift
done
git -C "$root" rev-parse -q --verify HEAD >/dev/null 2>&1 || fail "$root is no checkout: what belongs to a release is what is committed"
version=$(git -C "$root" show HEAD:VERSION)
out=$(realpath -m -- "${out:-$root/dist/$version}")
[[ ! -e $out || -z $(ls -A -- "$out") ]] || fail "$out is not empty"
bash "$root/scripts/install_deps.sh" --python --package
if [[ -n $(git -C "$root" status --porcelain --untracked-files=no) ]]; then echo 'release: what is not committed is not in it' >&2; fi

# The wheel of 3.12 is for all later ones, too (stable ABI).
if ((${#pythons[@]} == 0)); then mapfile -t pythons < <(bash "$root/packaging/pythons.sh" 9 10 11 12 | cut -d ' ' -f 2-); fi
((${#pythons[@]} > 0)) || fail 'there is no Python from 3.9 to 3.12 for which a wheel could be made'

if [[ -z $work ]]; then
  work=$(mktemp -d -p /var/tmp memspan-release.XXXXXX)
  trap 'rm -rf -- "$work"' EXIT
fi
say() { printf 'release: %s\n' "$*"; }
# Not the working tree: build folders there would be taken, and files that are not committed.
sources=$work/memspan
rm -rf -- "$sources"
git clone -q --no-checkout -- "$root" "$sources"
git -C "$sources" -c advice.detachedHead=false checkout -q "$(git -C "$root" rev-parse HEAD)"
SOURCE_DATE_EPOCH=$(bash "$sources/packaging/source_date.sh")
export SOURCE_DATE_EPOCH LC_ALL=C.UTF-8 TZ=UTC
umask 022
# Paths in binaries are those below the sources, whatever compiles: with a base directory, ccache gives the compiler
# relative paths, which it would write down as they are.
export CCACHE_BASEDIR=
mkdir -p -- "$out"

say "memspan $version, in $work; wheels for ${pythons[*]}"
cd -- "$sources"
bash scripts/build.sh
for python in "${pythons[@]}"; do
  name=$("$python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
  environment=$(bash scripts/python_env.sh --python "$python" "$work/env-$name")
  for processor in "$(uname -m)" "${others[@]}"; do
    say "the wheel for Python $name on $processor"
    bash scripts/build_wheel.sh --python "$environment" --out "$out" --arch "$processor" --glibc 2.28
  done
done
# The second .run package has the wheel of the distribution's Python, where there is one.
tag=$(/usr/bin/python3 -c 'import sys; print(f"cp3{min(sys.version_info[1], 12)}")' 2>/dev/null || echo none)
processor=$(uname -m)
wheel=$(ls -- "$out"/memspan-*-"$tag"-*"_$processor.whl" 2>/dev/null || ls -- "$out"/memspan-*"_$processor.whl" | tail -n 1)
say 'the .run packages'
cmake --install build --prefix "$work/tree" >/dev/null
bash packaging/package.sh --tree "$work/tree" --wheel "$wheel" --out "$out"
say 'the Debian packages'
bash packaging/deb.sh --out "$out"
say 'the sdist and the bill of materials'
"$environment" -c 'import sys; sys.path.insert(0, "packaging/python"); from memspan_backend import build_sdist; build_sdist(sys.argv[1])' "$out" >/dev/null
python3 packaging/sbom.py --build build/deb --build build --artefacts "$out" --out "$out/memspan-$version.spdx.json"
(cd -- "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs -d '\n' sha256sum >SHA256SUMS)
say "made, in $out:"
cat -- "$out/SHA256SUMS"
