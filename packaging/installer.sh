#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a .run package runs when it has unpacked itself: installs its tree as BASE/FOLDER/VERSION,
# points BASE/FOLDER/latest at it, or removes that version again. Other versions stay.
#
# Beside it lie `tree`, the files to install, and `package`, which sets name, version, arch, folder,
# home_of_root, home_of_users, wants_command and is_linked_above (packaging/package.sh).
# shellcheck disable=SC2154
set -euo pipefail

here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck disable=SC1091  # written by packaging/package.sh
source "$here/package"

fail() {
  printf '%s: %s\n' "$name" "$*" >&2
  exit 1
}

read_options() {
  command=
  base=$home_of_root
  [[ $(id -u) == 0 ]] || base=${HOME:-}/$home_of_users
  base=${base%/}
  local option
  for option in "$@"; do
    case $option in
      --install | --uninstall)
        [[ -z $command || $command == "$option" ]] || fail "$command and $option cannot be together"
        command=$option
        ;;
      --install-path=*)
        base=${option#*=}
        [[ -n $base ]] || fail "--install-path= needs a folder"
        # Makeself came here from where the user is.
        [[ $base == /* ]] || base=${USER_PWD:-$PWD}/$base
        while [[ $base == */ ]]; do base=${base%/}; done
        ;;
      --install-for-all | --no-check) ;; # everybody may always read what is installed
      *) fail "unknown option \"$option\"; see --help" ;;
    esac
  done
  if [[ -z $command ]]; then
    ! $wants_command || fail "say --install or --uninstall; see --help"
    command=--install
  fi
}

# make_folder FOLDER: with those above it; those that were not there go into $made.
made=()
make_folder() {
  [[ ! -d $1 ]] || return 0
  make_folder "$(dirname -- "$1")"
  mkdir -- "$1" 2>/dev/null || fail "cannot make the folder $1; --install-path=DIR installs elsewhere"
  chmod 755 -- "$1"
  made+=("$1")
}

# After an installation that failed: the folders made for it.
remove_made() {
  local i
  [[ ! -e $base/$folder/latest && ${#made[@]} -gt 0 ]] || return 0
  rm -f -- "$base/$folder/.made"
  for ((i = ${#made[@]} - 1; i >= 0; --i)); do rmdir -- "${made[i]}" 2>/dev/null || return 0; done
}

# The files, whole or not at all: a version that is there is replaced by one rename.
place_tree() {
  local place=$base/$folder/$version old=$base/$folder/.old.$version.$$
  next=$base/$folder/.next.$version.$$
  trap 'rm -rf -- "$next"; remove_made' EXIT
  cp -R -P --preserve=mode,timestamps,links -- "$here/tree" "$next" || fail "cannot write $next"
  local home=${place//\'/\'\\\'\'} # inside single quotes
  home=${home//[\\&|]/\\&}         # inside sed's replacement
  sed -i "s|@HOME@|$home|" "$next/set_env.sh"
  chmod -R u+w,go-w,a+rX -- "$next"
  if [[ -d $place ]]; then
    bash "$place/uninstall.sh" --wheel-only
    mv -T -- "$place" "$old"
  fi
  mv -T -- "$next" "$place"
  rm -rf -- "$old"
}

# The wheel that lies in the package, for the Python at hand.
install_wheel() {
  local place=$base/$folder/$version wheels python reason
  wheels=("$place"/*-linux/whl/*.whl)
  [[ -e ${wheels[0]} ]] || return 0
  if ! python=$(command -v python3); then
    reason='there is no python3'
  elif reason=$("$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps --force-reinstall "${wheels[0]}" 2>&1); then
    printf '%s\n' "$python" >"$place/wheel.python"
    printf '%s: the wheel is installed for %s\n' "$name" "$python"
    return 0
  fi
  # Pip's own error, or Python's last words: there may be no pip.
  reason=$({ sed -n 's/^\(error: \|ERROR: \)\{1,\}//p' <<<"$reason"; tail -n 1 <<<"$reason"; } | sed -n 1p)
  printf '%s: the wheel is not installed (%s); in an environment of a Python that it fits: pip install %q\n' \
    "$name" "$reason" "${wheels[0]}"
}

install() {
  [[ $(uname -m) == "$arch" ]] || fail "this package is for $arch, and this machine is $(uname -m)"
  make_folder "$base/$folder"
  [[ -w $base/$folder ]] || fail "cannot write into $base/$folder; --install-path=DIR installs elsewhere"
  if ((${#made[@]} > 0)); then printf '%s\n' "${made[@]}" >"$base/$folder/.made"; fi
  place_tree
  cd -- "$base/$folder"
  ln -sfnT -- "$version" .latest && mv -fT -- .latest latest
  local names=(set_env.sh) link
  ! $is_linked_above || names+=(uninstall.sh version.info)
  for link in "${names[@]}"; do ln -sfnT -- "latest/$link" "$link"; done
  install_wheel
  printf '%s: installed in %s; next: source %q\n' "$name" "$base/$folder/$version" "$base/$folder/set_env.sh"
  printf '%s install success!\n' "$name"
}

uninstall() {
  local program=$base/$folder/$version/uninstall.sh
  [[ -f $program ]] || fail "version $version is not installed in $base/$folder"
  bash "$program"
}

read_options "$@"
if [[ $command == --install ]]; then install; else uninstall; fi
