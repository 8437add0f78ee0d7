#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the benchmarks compare memspan with, in one virtual environment: Intel MPI, PyTorch with
# DeepSpeed's all-reduce, NIXL and Mooncake's transfer engine of PyPI; ucx_perftest and iperf3 of Debian.
#
#   install_rivals.sh [FOLDER [WHEEL]]      (build/rivals)
#
# WHEEL is memspan's, which the measurements of Python and PyTorch need in the same environment
# (scripts/build_wheel.sh). What cannot be installed is named, with the reason; the others are. The
# exit code is 1 when one is missing.
set -uo pipefail

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$root/build/rivals}
wheel=${2-}
python=$folder/bin/python
missing=0

complain() {
  printf 'install_rivals: %s: %s\n' "$1" "$(tail -n 1 <<<"$2")" >&2
  missing=1
}
pip_install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

# NAME PYTHON COMMAND...: runs the command unless the Python already runs, and then again.
install() {
  local name=$1 check=$2 output
  shift 2
  "$python" -c "$check" >/dev/null 2>&1 && return
  if output=$("$@" 2>&1) && output=$("$python" -c "$check" 2>&1); then return; fi
  complain "$name" "$output"
}

# PyPI has it as sources only; of them the two files that its ShareMemCommBuilder compiles are needed.
# shellcheck disable=SC2317 # install() calls it
build_deepspeed() {
  local sources=$folder/deepspeed
  rm -rf -- "$sources" && mkdir -p -- "$sources" &&
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation \
      --dest "$sources" deepspeed==0.19.8 &&
    tar -xzf "$sources"/deepspeed-*.tar.gz -C "$sources" --strip-components=1 --wildcards '*/csrc/cpu/comm/*' &&
    PATH=$folder/bin:$PATH "$python" "$root/benchmarks/python/deepspeed_op.py" "$sources"
}

for package in iperf3 ucx-utils libibverbs1 librdmacm1 libnuma1 libcurl4 liburing2; do
  dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' && continue
  as_root=()
  [[ $EUID == 0 ]] || as_root=(sudo -n)
  output=$("${as_root[@]}" apt-get install -y --no-install-recommends "$package" 2>&1) || complain "$package" "$output"
done

if ! "$python" -c '' 2>/dev/null; then
  output=$(python3 -m venv "$folder" 2>&1) || complain 'the virtual environment' "$output"
fi
# What others require of NIXL's and Mooncake's packages is for parts that are not used here.
install 'Intel MPI' 'import pathlib, sys; assert (pathlib.Path(sys.prefix) / "include/mpi.h").exists()' \
  pip_install impi-rt==2021.18.1 impi-devel==2021.18.1
install PyTorch 'import numpy, torch' pip_install torch==2.13.0 numpy ninja setuptools wheel
install DeepSpeed "import sys; sys.path.insert(0, '$root/benchmarks/python'); import deepspeed_op; deepspeed_op.load('$folder/deepspeed')" \
  build_deepspeed
install NIXL 'import nixl_cu12._api' pip_install --no-deps nixl-cu12==1.5.1 nixl==1.5.1
install Mooncake 'import mooncake.engine' pip_install --no-deps mooncake-transfer-engine-non-cuda==0.3.13.post1
if [[ -n $wheel ]]; then
  output=$(pip_install --no-deps --force-reinstall "$wheel" 2>&1) || complain memspan "$output"
fi

[[ ! -x $python ]] || "$python" - <<'END'
import importlib.metadata as installed

for name, package in (("Intel MPI", "impi-rt"), ("PyTorch", "torch"), ("NIXL", "nixl-cu12"),
                      ("Mooncake", "mooncake-transfer-engine-non-cuda"), ("memspan", "memspan")):
    try:
        print(f"install_rivals: {name} {installed.version(package)}")
    except installed.PackageNotFoundError:
        print(f"install_rivals: {name} is not there")
END
exit "$missing"
