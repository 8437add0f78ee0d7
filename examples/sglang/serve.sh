#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A prefill and a decode engine of SGLang on this host, their store, and SGLang's router before them, until Ctrl-C:
#
#   bash serve.sh MODEL [ARGUMENTS OF sglang.launch_server...]
#   curl http://127.0.0.1:8000/generate -H 'Content-Type: application/json' \
#     -d '{"text": "Once upon a time", "sampling_params": {"max_new_tokens": 20}}'
#
# The router is sglang-router of PyPI. Ports: ROUTER_PORT (8000), PREFILL_PORT (8100), DECODE_PORT (8200), BOOTSTRAP_PORT
# (8998), STORE_PORT (8571). LOGS: the folder of logs (.). With two GPUs, DECODE_GPU (1) is the one of the decode engine.
set -euo pipefail
if (($# == 0)); then
  echo 'usage: serve.sh MODEL [ARGUMENTS OF sglang.launch_server...]' >&2
  exit 2
fi
model=$1
shift
python=${PYTHON:-python3}
router_port=${ROUTER_PORT:-8000} prefill_port=${PREFILL_PORT:-8100} decode_port=${DECODE_PORT:-8200}
bootstrap_port=${BOOTSTRAP_PORT:-8998}
store=tcp://127.0.0.1:${STORE_PORT:-8571}
logs=${LOGS:-.}
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

export MEMSPAN_SGLANG=1 MEMSPAN_STORE=$store
"$python" -c 'from memspan.programs import store; store()' --listen "$store" >"$logs/store.log" 2>&1 &
started+=($!)
"$python" -m sglang.launch_server --model-path "$model" --host 127.0.0.1 --port "$prefill_port" \
  --disaggregation-mode prefill --disaggregation-transfer-backend mooncake \
  --disaggregation-bootstrap-port "$bootstrap_port" "$@" >"$logs/prefill.log" 2>&1 &
started+=($!)
"$python" -m sglang.launch_server --model-path "$model" --host 127.0.0.1 --port "$decode_port" \
  --disaggregation-mode decode --disaggregation-transfer-backend mooncake \
  --base-gpu-id "${DECODE_GPU:-1}" "$@" >"$logs/decode.log" 2>&1 &
started+=($!)
for port in "$prefill_port" "$decode_port"; do
  until "$python" -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:$port/health', timeout=5)" 2>/dev/null; do
    for process in "${started[@]}"; do
      kill -0 "$process" 2>/dev/null || {
        echo "serve.sh: a part has ended; see $logs/*.log" >&2
        exit 1
      }
    done
    sleep 1 # between questions
  done
done
"$python" -m sglang_router.launch_router --pd-disaggregation --host 127.0.0.1 --port "$router_port" \
  --prefill "http://127.0.0.1:$prefill_port" "$bootstrap_port" --decode "http://127.0.0.1:$decode_port" &
started+=($!)
wait -n "${started[@]}"
echo "serve.sh: a part has ended; see $logs/*.log" >&2
exit 1
