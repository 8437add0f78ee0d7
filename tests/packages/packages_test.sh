#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# packages_test.sh TREE [WHEEL PYTHON]: the .run packages of the installed TREE, as a user has them: whole
# and damaged, as root and as nobody, beside another version, and away again. With WHEEL, which fits PYTHON,
# also whether it is installed.
set -euo pipefail

tree=$1
wheel=${2-}
python=${3-}
here=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -- "$here/../.." && pwd)
version=$(<"$root/VERSION")
arch=$(uname -m)
# Others than root must reach it.
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
chmod 755 "$work"
mkdir -m 1777 "$work/tmp"
export TMPDIR=$work/tmp
log=$work/log
exec </dev/null

fail() {
  printf 'FAILED: %s\n' "$*" >&2
  exit 1
}
# shellcheck source=tests/support/readme.sh
source "$here/../support/readme.sh"
# Who is not root may not reach the checkout.
cp -- "$readme" "$root/docs/start.md" "$work/"
readme=$work/README.md

# quietly COMMAND...: what it printed only when it fails.
quietly() { "$@" >"$log" 2>&1 || fail "$* gave $?: $(cat "$log")"; }
# refused WORDS COMMAND...: it must fail and say so.
refused() {
  local words=$1
  shift
  ! "$@" >"$log" 2>&1 || fail "not refused: $*"
  grep -qF -- "$words" "$log" || fail "$* said: $(cat "$log")"
}
is_empty() { # FOLDER WHY
  [[ -z $(find "$1" -mindepth 1 -print -quit) ]] || fail "$2: $(find "$1" -mindepth 1 | head)"
}
shmem() { printf '%s/packages/SHMEM_%s_linux-%s.run' "$work" "$1" "$arch"; }
memfabric() { printf '%s/packages/mxc-memfabric-hybrid-%s_linux_%s.run' "$work" "$1" "$arch"; }

make_packages() {
  local each
  for each in "$version" 99.0.1; do
    quietly bash "$root/packaging/package.sh" --tree "$tree" ${wheel:+--wheel "$wheel"} --out "$work/packages" --version "$each"
  done
  for each in "$(shmem "$version")" "$(memfabric 99.0.1)"; do [[ -x $each ]] || fail "$each is not there"; done
  is_empty "$TMPDIR" 'left by package.sh'
}

# What is no use is refused before anything is written.
check_refusals() {
  local package damaged=$work/damaged.run place=$work/refused
  mkdir "$place"
  for package in "$(shmem "$version")" "$(memfabric "$version")"; do
    quietly "$package" --check
    grep -q 'All good' "$log" || fail "--check said: $(cat "$log")"
    quietly "$package" --help
    grep -q -- '--install-path=DIR' "$log" || fail "--help said: $(cat "$log")"
    cp -- "$package" "$damaged"
    printf '\0\1\2\3' | dd of="$damaged" bs=1 seek=1000000 conv=notrunc status=none
    refused checksum "$damaged" --check
    refused checksum "$damaged" --install --install-path="$place"
    head -c 1000000 -- "$package" >"$damaged"
    refused size "$damaged" --install --install-path="$place"
    refused '"--instal"' "$package" --instal
    refused 'is not installed in' "$package" --uninstall --install-path="$place"
    if [[ $arch == x86_64 ]]; then
      refused 'this package is for x86_64, and this machine is i686' setarch i686 "$package" --install --install-path="$place"
    else
      echo "not tried: a package on another machine, setarch knows none beside $arch"
    fi
  done
  refused 'say --install or --uninstall' "$(shmem "$version")"
  is_empty "$place" 'written although refused'
  is_empty "$TMPDIR" 'left by what was refused'
}

# The programs of the README and of docs/start.md by their lines, in a new shell each, which knows no more than a new user's.
new_shell() { env -i PATH=/usr/local/bin:/usr/bin:/bin HOME="$HOME" TMPDIR="$TMPDIR" bash -euc "$1"; }
build_and_run() { # FOLDER OF SHMEM, OF MEMFABRIC, EMPTY FOLDER
  local port input
  cd -- "$3"
  new_shell "source '$1/set_env.sh'; source '$1/set_env.sh'
    [[ \$PKG_CONFIG_PATH == '$1/latest/lib'*/pkgconfig && \$MANPATH == '$1/latest/share/man:' ]]
    [[ \$(command -v oshrun) == '$1/latest/bin/oshrun' ]]" || fail "set_env.sh of $1"
  program_of_readme shmem_init ring.c
  new_shell "source '$1/set_env.sh'; $(line_of_readme 'oshcc -o ring')" | sort >out || fail 'the ring failed'
  cmp -s out <(output_of_readme 'oshcc -o ring') || fail "the ring printed: $(cat out)"
  ./ring | grep -qx 'PE 0 of 1 got 100' || fail 'the ring does not run in a second terminal'
  new_shell "source '$1/set_env.sh'; eval \"cc ring.c -o ring-2 \$(pkg-config --cflags --libs openshmem)\""

  local readme=$work/start.md
  program_of_readme smem_bm_init pool.c
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  sed -i "s/:8570/:$port/" pool.c
  new_shell "source '$2/set_env.sh'; ! [[ -v SHMEM_HOME_PATH ]]; $(line_of_readme home=)
    $(line_of_readme 'cc -o pool')"
  # The first process becomes rank 0, and stays until its input ends.
  mkfifo first
  exec {input}> >(stdbuf -oL timeout 60 ./pool >first 2>&1)
  head -n 1 first | grep -qx 'press enter to end' || fail 'the first of the pool did not start in a second terminal'
  timeout 60 ./pool >second 2>&1 || fail "the second: $(cat second)"
  exec {input}>&-
  grep -qx 'hello from rank 0' second || fail "the second of the pool printed: $(cat second)"
  cd /
}

# MemFabric's documents tell of these.
check_memfabric_tree() { # FOLDER
  local path
  for path in latest/version.info "$version/uninstall.sh" "$version/$arch-linux/lib64/libmf_smem.so" \
    "$version/$arch-linux/include/smem/host/smem.h" "$version/$arch-linux/whl" set_env.sh uninstall.sh version.info; do
    [[ -e $1/$path ]] || fail "$1/$path is not there"
  done
  grep -qx "Version: $version" "$1/version.info" || fail "version.info: $(cat "$1/version.info")"
}

latest() { [[ $(readlink "$1/latest") == "$2" ]] || fail "$1/latest is $(readlink "$1/latest"), not $2"; }

# Both, with the words of their documents, a second version beside the first, and away. OPTION... are for
# all calls.
whole_life() { # BASE OF SHMEM, OF MEMFABRIC, EMPTY FOLDER, OPTION...
  local mine=$1/shmem mxc=$2/mxc/memfabric_hybrid empty=$3
  shift 3
  quietly "$(shmem "$version")" --install "$@"
  [[ $(tail -n 1 "$log") == 'SHMEM install success!' ]] || fail "it ended with: $(tail -n 1 "$log")"
  quietly "$(memfabric "$version")" "$@"
  [[ -n $wheel ]] || ! grep -q wheel "$log" || fail "a wheel that is not there: $(cat "$log")"
  check_memfabric_tree "$mxc"
  build_and_run "$mine" "$mxc" "$empty"

  quietly "$(shmem 99.0.1)" --install "$@"
  quietly "$(memfabric 99.0.1)" --install "$@"
  quietly "$(shmem 99.0.1)" --install "$@" # once more
  latest "$mine" 99.0.1
  latest "$mxc" 99.0.1
  "$empty/ring" >/dev/null || fail 'a program of the first version does not run beside the second'
  quietly "$(shmem 99.0.1)" --uninstall "$@"
  quietly bash "$mxc/uninstall.sh"
  latest "$mine" "$version"
  latest "$mxc" "$version"
  quietly "$(shmem "$version")" --uninstall "$@"
  quietly "$mxc/$version/uninstall.sh"
}

# part COMMAND...: the rest of the words, which may make us somebody else first, and then a function.
part() {
  export work version arch wheel readme
  export log=$work/log.${!#}
  touch -- "$log" && chmod 666 "$log"
  # shellcheck disable=SC2046
  export -f $(compgen -A function)
  "${@:1:$#-1}" bash -euo pipefail -c "${!#}" || fail "${!#}"
}

as_root() {
  mount -t tmpfs none /usr/local
  mkdir "$work/root"
  whole_life /usr/local/Ascend /usr/local "$work/root"
  is_empty /usr/local 'left by uninstall'
  echo 'passed: as root'
}

as_user() {
  export HOME="$work/user/home of one"
  mkdir -p "$HOME" "$work/user/1" "$work/user/2" "$work/user/a b/x"
  whole_life "$HOME/Ascend" "$HOME" "$work/user/1"
  is_empty "$HOME" 'left by uninstall'
  whole_life "$work/user/a b/c" "$work/user/a b/c" "$work/user/2" --install-path="$work/user/a b/c/"
  [[ $(ls "$work/user/a b") == x ]] || fail "left by uninstall: $(ls "$work/user/a b")"
  [[ $(id -u) == 0 ]] || refused 'cannot make the folder /usr/x' "$(shmem "$version")" --install --install-path=/usr/x
  echo 'passed: as a user'
}

# The wheel goes to the Python that is first on PATH, and away with the package.
with_wheel() {
  local place=$work/wheel
  "$python" -m venv "$place/env"
  PATH=$place/env/bin:$PATH quietly "$(memfabric "$version")" --install-path="$place"
  grep -q 'the wheel is installed for' "$log" || fail "it said: $(cat "$log")"
  "$place/env/bin/python" -c 'import mf_smem, memspan; print(memspan.get_lib_path())' | grep -q "^$place/env" || fail 'cannot import it'
  quietly bash "$place/mxc/memfabric_hybrid/uninstall.sh"
  ! "$place/env/bin/python" -c 'import mf_smem' 2>/dev/null || fail 'the wheel is still there'
  echo 'passed: the wheel'
}

# A Python that the wheel does not fit, or that has no pip: one line, and all else is there.
without_wheel() {
  local place=$work/no-wheel
  python3 -m venv --without-pip "$place/env"
  PATH=$place/env/bin:$PATH quietly "$(memfabric "$version")" --install-path="$place"
  [[ $(grep -c 'the wheel is not installed (.*No module named pip); .*pip install' "$log") == 1 ]] || fail "it said: $(cat "$log")"
  [[ $(tail -n 1 "$log") == 'memfabric_hybrid install success!' ]] || fail "it ended with: $(tail -n 1 "$log")"
}

make_packages
check_refusals
if [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null; then
  part unshare -m --propagation private as_root
elif unshare -rm true 2>/dev/null; then
  part unshare -rm --propagation private as_root
else
  echo 'not tried: an installation as root, which needs a mount namespace that this machine does not give'
fi
if [[ $(id -u) == 0 ]]; then
  mkdir -m 777 "$work/user"
  part setpriv --reuid 65534 --regid 65534 --clear-groups as_user
else
  part as_user
fi
[[ -z $wheel ]] || with_wheel
[[ -z $wheel ]] || without_wheel
is_empty "$TMPDIR" 'left in the folder for temporary files'
echo 'passed: packages'
