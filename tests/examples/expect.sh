#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# expect.sh CODE REGEX COMMAND...: runs the command, shows its output, and succeeds when it exits
# with CODE, some line matches REGEX, and a job's result or refusal was said only once.
code=$1 regex=$2
shift 2
output=$("$@" 2>&1)
actual=$?
echo "$output"
if [[ $actual != "$code" ]]; then
  echo "expect.sh: exit code $actual, expected $code" >&2
  exit 1
fi
lines=$(grep -cE "$regex" <<<"$output")
if [[ $lines != 1 ]]; then
  echo "expect.sh: $lines lines match \"$regex\", expected one" >&2
  exit 1
fi
