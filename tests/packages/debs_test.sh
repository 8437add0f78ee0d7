#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debs_test.sh DEBS TREE: the Debian packages in the folder DEBS. Together they have what `cmake --install` wrote into
# TREE, each file once, and each says rightly what it is and needs. Lintian looks at them where it is installed.
set -euo pipefail

debs=$1
tree=$2
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
version=$(<"$root/VERSION")-1
arch=$(dpkg --print-architecture)
triplet=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
field() { dpkg-deb -f "$debs/$1_${version}_$arch.deb" "$2"; }
# names PACKAGE: the paths of its files and links, without the leading dot.
names() { dpkg-deb -c "$debs/$1_${version}_$arch.deb" | sed -n 's/ -> .*//; s/^[-l].* \.\//\//p'; }

packages=()
for file in "$debs"/*.deb; do
  name=${file##*/}
  [[ $name == *"_${version}_$arch.deb" ]] || fail "$name is not of version $version and $arch"
  packages+=("${name%%_*}")
done
# has PACKAGE: whether it was made; modules and Python are optional.
has() { [[ " ${packages[*]} " == *" $1 "* ]]; }
for name in libmemspan0 libmemspan-dev memspan-tools memspan-openshmem; do has "$name" || fail "there is no package $name"; done

# Each file of an installation is in one package. A package has its licence and its manual pages in a way of its own,
# and MemFabric's layout does not belong below /usr.
all_in_one_package() {
  local name path
  for name in "${packages[@]}"; do names "$name"; done | sort >"$work/packed"
  [[ -z $(uniq -d "$work/packed") ]] || fail "in two packages: $(uniq -d "$work/packed")"
  (cd -- "$tree" && find . ! -type d) | sed -e 's/^\.//' -e '/^\/set_env\.sh$/d' -e '/^\/share\/doc\//d' -e '/^\/[a-z0-9_]*-linux\//d' \
    -e "s/^\/lib\(64\)\{0,1\}\/\(libmemspan_.*\)/\/lib\/$triplet\/memspan\/\2/" \
    -e "/$triplet/!s/^\/lib\(64\)\{0,1\}\//\/lib\/$triplet\//" -e 's/\(man1\/.*\)/\1.gz/' -e 's/^/\/usr/' | sort >"$work/installed"
  path=$(comm -23 "$work/installed" "$work/packed")
  [[ -z $path ]] || fail "installed, and in no package: $path"
  path=$(comm -13 "$work/installed" "$work/packed" | grep -Ev '^/usr/(share/(doc|lintian)/|lib/python3/|bin/shmem-config$)' || true)
  [[ -z $path ]] || fail "in a package, and not installed: $path"
}

needs() { # PACKAGE FIELD WORDS...
  local package=$1 field=$2 words
  words=$(field "$package" "$field")
  shift 2
  for word in "$@"; do [[ ", $words, " == *", $word"* ]] || fail "$package has the $field \"$words\", without $word"; done
}
never_needs() { # PACKAGE WORDS
  [[ " $(field "$1" Depends)" != *" $2"* ]] || fail "$1 depends on $2: $(field "$1" Depends)"
}

relations() {
  local name
  needs libmemspan0 Depends 'libc6 (>= ' 'libssl3' 'libstdc++6'
  never_needs libmemspan0 libucx
  never_needs libmemspan0 libcurl
  for name in "${packages[@]}"; do
    [[ $name == libmemspan0 ]] || needs "$name" Depends "libmemspan0 (= $version)"
    [[ $(field "$name" Maintainer) == 'The memspan authors '* ]] || fail "$name is maintained by $(field "$name" Maintainer)"
  done
  needs memspan-openshmem Conflicts openmpi-bin
  [[ -z $(field memspan-tools Conflicts) ]] || fail "memspan-tools conflicts with $(field memspan-tools Conflicts)"
  ! has memspan-ucx || needs memspan-ucx Depends libucx0
  ! has memspan-etcd || needs memspan-etcd Depends 'libcurl4 '
  ! has python3-memspan || needs python3-memspan Depends 'python3 (>= 3.' 'python3 (<< 3.'
  if has python3-memspan; then
    dpkg-deb -e "$debs/python3-memspan_${version}_$arch.deb" "$work/scripts"
    [[ -x $work/scripts/postinst && -x $work/scripts/prerm ]] || fail "python3-memspan does not compile and clean up: $(ls "$work/scripts")"
  fi
  dpkg-deb -e "$debs/libmemspan0_${version}_$arch.deb" "$work/control"
  grep -qx "libmemspan 0 libmemspan0 (= $version)" "$work/control/shlibs" || fail "shlibs: $(cat "$work/control/shlibs" 2>&1)"
  grep -qx 'activate-noawait ldconfig' "$work/control/triggers" || fail "triggers: $(cat "$work/control/triggers" 2>&1)"
}

# What is packed: stripped, without paths of where it was built, and loaded from where the system has it.
binaries() {
  local name file
  for name in "${packages[@]}"; do
    dpkg-deb -x "$debs/${name}_${version}_$arch.deb" "$work/root"
  done
  while IFS= read -r -d '' file; do
    [[ $(head -c 4 -- "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
    ! readelf -d "$file" | grep -E 'RPATH|RUNPATH' || fail "${file#"$work/root"} has a run path"
    ! readelf -S "$file" | grep -q '\.debug_info' || fail "${file#"$work/root"} is not stripped"
    ! grep -qF -- "$root/" "$file" || fail "${file#"$work/root"} knows $root: $(strings "$file" | grep -F "$root/" | head -n 3)"
  done < <(find "$work/root/usr" -type f -print0)
  [[ $(readelf -d "$work/root/usr/lib/$triplet/libmemspan.so.0" | grep SONAME) == *'[libmemspan.so.0]' ]] || fail 'the SONAME is another'
  # Dangling links are faults, but for those into packages that are not here.
  while IFS= read -r file; do fail "${file#"$work/root"} leads to nothing"; done < <(find "$work/root/usr" -xtype l)
  # A program finds the library's modules from /usr/bin, too.
  LD_LIBRARY_PATH=$work/root/usr/lib/$triplet "$work/root/usr/bin/memspan-info" >"$work/out" || fail "memspan-info: $(cat "$work/out")"
  grep -qE "^memspan +version: ${version%-1}\$" "$work/out" || fail "memspan-info says: $(cat "$work/out")"
  ! has memspan-ucx || grep -q ' ucx: what UCX finds' "$work/out" || fail "it does not find the module over UCX: $(cat "$work/out")"
}

look_with_lintian() {
  if ! command -v lintian >/dev/null; then
    echo 'not tried: lintian, which is not installed (scripts/install_deps.sh --release)'
    return
  fi
  lintian --allow-root --fail-on error --suppress-tags initial-upload-closes-no-bugs "$debs"/*.deb >"$work/lintian" 2>&1 || fail "lintian: $(grep -v '^[WIN]: ' "$work/lintian")"
  printf 'lintian: no error, %d warnings\n' "$(grep -c '^W: ' "$work/lintian" || true)"
}

all_in_one_package
relations
binaries
look_with_lintian
echo 'passed: Debian packages'
