#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A prefill and a decode engine of vLLM on this host, their store, and a proxy before them, until Ctrl-C:
#
#   bash serve.sh MODEL [ARGUMENTS OF vllm serve...]
#   curl http://127.0.0.1:8000/v1/completions -H 'Content-Type: application/json' \
#     -d '{"model": "MODEL", "prompt": "Once upon a time", "max_tokens": 20}'
#
# Ports: PROXY_PORT (8000), PREFILL_PORT (8100), DECODE_PORT (8200), STORE_PORT (8572). LOGS: the folder of logs (.).
set -euo pipefail
if (($# == 0)); then
  echo 'usage: serve.sh MODEL [ARGUMENTS OF vllm serve...]' >&2
  exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${PYTHON:-python3}
proxy_port=${PROXY_PORT:-8000} prefill_port=${PREFILL_PORT:-8100} decode_port=${DECODE_PORT:-8200}
store=tcp://127.0.0.1:${STORE_PORT:-8572}
logs=${LOGS:-.}
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

config=$(printf '{"kv_connector": "MemspanConnector", "kv_connector_module_path": "memspan.connectors.vllm",
  "kv_role": "kv_both", "kv_load_failure_policy": "recompute",
  "kv_connector_extra_config": {"store_url": "%s", "host_store": false}}' "$store")
"$python" -c 'from memspan.programs import store; store()' --listen "$store" >"$logs/store.log" 2>&1 &
started+=($!)
for engine in "prefill $prefill_port" "decode $decode_port"; do
  read -r name port <<<"$engine"
  "$python" -m vllm.entrypoints.cli.main serve "$@" --host 127.0.0.1 --port "$port" \
    --kv-transfer-config "$config" >"$logs/$name.log" 2>&1 &
  started+=($!)
done
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
"$python" "$here/proxy.py" --port "$proxy_port" --prefill "http://127.0.0.1:$prefill_port" \
  --decode "http://127.0.0.1:$decode_port" &
started+=($!)
wait -n "${started[@]}"
echo "serve.sh: a part has ended; see $logs/*.log" >&2
exit 1
