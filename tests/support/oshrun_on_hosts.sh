# SPDX-License-Identifier: Apache-2.0
# oshrun_on_hosts.sh OSHRUN -n N --simulate-hosts 3+1 WORDS...: the job, on namespaces where the test session
# has them.
if [ -z "$MEMSPAN_TEST_HOLDERS" ]; then exec "$@"; fi
exec python3 "${0%.sh}.py" "$@"
