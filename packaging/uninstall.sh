#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Removes the version that it lies in; `latest` then names the newest that is left. With the last one
# everything goes that the installation made.
#
#   uninstall.sh [--wheel-only]
#
#   --wheel-only   only the wheel that was installed with it
set -euo pipefail

here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd)
above=$(dirname -- "$here")
version=$(basename -- "$here")

fail() {
  printf 'uninstall: %s\n' "$*" >&2
  exit 1
}

remove_wheel() {
  local record=$here/wheel.python python wheels
  [[ -f $record ]] || return 0
  python=$(<"$record")
  wheels=("$here"/*-linux/whl/*.whl)
  # Another version may have been installed since.
  if [[ $("$python" -c 'import importlib.metadata as m; print(m.version("memspan"))' 2>/dev/null) == "$(cut -d- -f2 <<<"${wheels[0]##*/}")" ]]; then
    "$python" -m pip uninstall --quiet --disable-pip-version-check --yes memspan ||
      printf 'uninstall: the wheel could not be removed from %s\n' "$python" >&2
  fi
  rm -f -- "$record"
}

# After this version's files are gone.
remove_rest() {
  local rest=() file folders=() i other
  for file in "$above"/*/version.info; do
    file=$(dirname -- "$file")
    [[ -L $file || ! -d $file ]] || rest+=("$(basename -- "$file")")
  done
  if ((${#rest[@]} > 0)); then
    [[ -e $above/latest ]] || ln -sfnT -- "$(printf '%s\n' "${rest[@]}" | sort -V | tail -n 1)" "$above/latest"
    return
  fi
  [[ ! -f $above/.made ]] || mapfile -t folders <"$above/.made"
  rm -f -- "$above"/{latest,set_env.sh,uninstall.sh,version.info,.made}
  for ((i = ${#folders[@]} - 1; i >= 0; --i)); do
    rmdir -- "${folders[i]}" 2>/dev/null && continue
    # The other package may have come into a folder made for this one: it goes with that.
    for other in "${folders[i]}"/{,*/}*/.made; do
      [[ -f $other ]] || continue
      printf '%s\n' "${folders[@]:0:i+1}" | cat - "$other" >"$other.new" && mv -- "$other.new" "$other"
      return
    done
    return
  done
}

main() {
  local name
  case ${1-} in
    '' | --wheel-only) ;;
    -h | --help)
      sed -n '3,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
      return
      ;;
    *) fail "unknown option \"$1\"; allowed is --wheel-only" ;;
  esac
  name=$(sed -n 's/^Name: //p' "$here/version.info" 2>/dev/null) && [[ -n $name ]] || fail "$here is no installed version"
  [[ -w $above ]] || fail "may not write into $above"
  remove_wheel
  [[ -z ${1-} ]] || return 0
  cd /
  rm -rf -- "$here"
  remove_rest
  printf '%s: version %s is removed from %s\n' "$name" "$version" "$above"
}

main "$@"
exit
