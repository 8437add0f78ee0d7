#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the .run packages of an installed memspan, which unpack and install themselves (makeself).
#
#   package.sh --tree DIR [--wheel FILE] [--out DIR] [--version V]
#
#   --tree DIR     what `cmake --install` wrote
#   --wheel FILE   the Python wheel that the second package carries (none)
#   --out DIR      where they go (dist)
#   --version V    their version (that of the file VERSION)
#
# The time in them is $SOURCE_DATE_EPOCH, else that of the last commit. They are
# SHMEM_VERSION_linux-ARCH.run and mxc-memfabric-hybrid-VERSION_linux_ARCH.run. The last two lines are
# their paths.
set -euo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
tree=
wheel=
out=$root/dist
version=$(<"$root/VERSION")
arch=$(uname -m)

fail() {
  printf 'package: %s\n' "$*" >&2
  exit 1
}
while (($# > 0)); do
  case $1 in
    --tree | --wheel | --out | --version)
      (($# > 1)) || fail "$1 needs a value"
      declare "${1#--}=$2"
      shift
      ;;
    --help | -h)
      sed -n '3,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      exit 0
      ;;
    *) fail "unknown option \"$1\"; allowed are --tree, --wheel, --out and --version" ;;
  esac
  shift
done
command -v makeself >/dev/null || fail 'makeself is missing (scripts/install_deps.sh --package)'
for library in "$tree"/lib*/{,*/}libmemspan.so; do [[ ! -e $library ]] || break; done
[[ -e $library ]] || fail "--tree is \"$tree\", which has no lib/libmemspan.so"
libraries=$(dirname -- "$library")
[[ -z $wheel || -f $wheel ]] || fail "--wheel is \"$wheel\", which is no file"
[[ $version =~ ^[0-9A-Za-z][0-9A-Za-z.+~_-]*$ ]] || fail "--version is \"$version\"; allowed are letters, digits and . + ~ _ -"

# The same bytes whenever and wherever they are made.
time=$(bash "$root/packaging/source_date.sh")
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
mkdir -p -- "$out"
# Options that makeself does not know are the installer's, which refuses what it does not know either;
# a damaged file does not leave the folder behind that was made for it. The command line has paths of here.
sed -e '/^    -\*)$/,/;;/c\    -*)\n\tbreak ;;' \
  -e 's/^    MS_Check "\\$0"$/    (MS_Check "\\$0") || { rmdir "\\$tmpdir"; exit 2; }/' \
  -e 's/\$MS_COMMAND/packaging\/package.sh/' /usr/share/makeself/makeself-header.sh >"$work/header"
if [[ $(diff /usr/share/makeself/makeself-header.sh "$work/header" | grep -c '^>') != 3 ]]; then
  fail "this makeself is not one that we know: $(makeself --version)"
fi

# Of a gzip that writes no time, which makeself cannot ask for.
mkdir -- "$work/bin"
printf '#!/bin/sh\nexec %q -n "$@"\n' "$(command -v gzip)" >"$work/bin/gzip"
chmod 755 "$work/bin/gzip"

describe() { # NAME
  printf 'Name: %s\nVersion: %s\nPlatform: linux-%s\nCommitId: %s\n' "$1" "$version" "$arch" \
    "$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)"
}

# finish NAME FILE LIBDIR LINE...: what both have, in $work/NAME; the lines are the installer's variables.
finish() {
  local name=$1 file=$2 libdir=$3 place=$work/$1 binary
  shift 3
  find "$place/tree" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0 |
    while IFS= read -r -d '' binary; do
      if [[ $(head -c 4 -- "$binary") == $'\x7fELF' ]]; then strip --strip-unneeded -- "$binary"; fi
    done
  sed "s|@LIBDIR@|$libdir|g" "$root/packaging/set_env.sh.in" >"$place/tree/set_env.sh"
  describe "$name" >"$place/tree/version.info"
  cp -- "$root/packaging/uninstall.sh" "$place/tree/"
  cp -- "$root/LICENSE" "$root/packaging/copyright" "$place/tree/"
  chmod 755 "$place/tree/uninstall.sh"
  cp -- "$root/packaging/installer.sh" "$place/"
  printf '%s\n' "name=$name" "version=$version" "arch=$arch" "$@" >"$place/package"
  # Its text stands in single quotes.
  sed -e "s|@NAME@|$name|g" -e "s|@FILE@|${file##*/}|g" -e "s|@WHERE@|$(where "$place/package")|g" \
    "$root/packaging/help.txt" >"$work/help"
  chmod -R u=rwX,go=rX -- "$place"
  PATH=$work/bin:$PATH makeself --quiet --sha256 --nox11 --noprogress --tar-quietly --packaging-date "$(date -u -R -d "@$time")" \
    --tar-extra "--sort=name --mtime=@$time --owner=0 --group=0 --numeric-owner" --header "$work/header" --help-header "$work/help" \
    "$place" "$file" "$name $version" bash ./installer.sh >"$work/log" 2>&1 || fail "makeself: $(tail -n 3 "$work/log")"
  rm -rf -- "$place"
}

where() (
  # shellcheck disable=SC1090
  source "$1"
  # shellcheck disable=SC2154
  printf '%s/%s/%s as root, $HOME%s/%s/%s else' "$home_of_root" "$folder" "$version" "${home_of_users:+/$home_of_users}" "$folder" "$version"
)

shmem=$out/SHMEM_${version}_linux-$arch.run
mkdir -p -- "$work/SHMEM"
cp -a -- "$tree" "$work/SHMEM/tree"
rm -rf -- "$work/SHMEM/tree/wheel"
finish SHMEM "$shmem" "${libraries#"$tree"/}" folder=shmem home_of_root=/usr/local/Ascend home_of_users=Ascend \
  wants_command=true is_linked_above=false

# MemFabric's own tree, with the programs that belong to it.
memfabric=$out/mxc-memfabric-hybrid-${version}_linux_$arch.run
place=$work/memfabric_hybrid/tree
mkdir -p -- "$place"/{bin,"$arch-linux"/{include,lib64,whl}}
cp -a -- "$tree"/bin/{memspan-info,memspan-store,memspan-top,memspan-explain} "$place/bin/"
cp -a -- "$libraries"/lib*.so* "$place/$arch-linux/lib64/"
rm -f -- "$place/$arch-linux/lib64/libshmem.so"
for include in "$tree"/include/*/; do
  case $include in */mpp/) ;; *) cp -a -- "${include%/}" "$place/$arch-linux/include/" ;; esac
done
rm -f -- "$place/$arch-linux"/include/memspan/openshmem_*.h
[[ -z $wheel ]] || cp -- "$wheel" "$place/$arch-linux/whl/"
finish memfabric_hybrid "$memfabric" "$arch-linux/lib64" folder=mxc/memfabric_hybrid home_of_root=/usr/local home_of_users= \
  wants_command=false is_linked_above=true
printf '%s\n' "$shmem" "$memfabric"
