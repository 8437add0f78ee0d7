#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# secured_pool.sh FOLDER PROGRAM DECRYPTER: the pool with certificates works, and neither with a wrong
# password nor with another authority's certificate.
set -uo pipefail
folder=$1 program=$2 decrypter=$3
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

fail() { echo "secured_pool.sh: $1" >&2; exit 1; }
expect_failure() {
  local output
  if output=$("$program" "$work/one" "$decrypter" 2>&1); then fail "it worked with $1"; fi
  echo "$output"
  grep -q "$2" <<<"$output" || fail "with $1 it does not say \"$2\""
}

bash "$folder/make_certificates.sh" "$work/one" || exit 1
bash "$folder/make_certificates.sh" "$work/two" || exit 1
output=$("$program" "$work/one" "$decrypter" 2>&1) || { echo "$output"; fail 'it does not work'; }
echo "$output"
[[ $(grep -c 'PASS$' <<<"$output") == 2 ]] || fail 'not both ranks passed'

cp "$work/one/member.password" "$work/password"
echo wrong >"$work/one/member.password"
expect_failure 'a wrong password' 'password'
cp "$work/password" "$work/one/member.password"

cp "$work/two/ca.pem" "$work/one/ca.pem"
expect_failure 'another authority' 'certificate'
