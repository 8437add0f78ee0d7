#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make_certificates.sh FOLDER: an authority and one member, for trying things out: valid for 90
# days, and the password of the member's key is written down backwards, as decrypter.c reads it.
set -euo pipefail

if (($# != 1)); then
  echo 'usage: make_certificates.sh FOLDER' >&2
  exit 2
fi
command -v openssl >/dev/null || { echo 'make_certificates: openssl is missing' >&2; exit 1; }
mkdir -p -- "$1"
chmod 700 -- "$1"
cd -- "$1"
umask 077

password=$(openssl rand -hex 16)
make_key() { openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:3072 "$@"; }
log=$(mktemp)
trap 'rm -f -- "$log"' EXIT
{
  make_key -out ca.key
  openssl req -x509 -new -key ca.key -subj '/CN=memspan example authority' -days 90 \
    -addext keyUsage=critical,keyCertSign,cRLSign -out ca.pem
  make_key -aes-256-cbc -pass "pass:$password" -out member.key
  openssl req -new -key member.key -passin "pass:$password" -subj '/CN=member' -out member.csr
  printf '%s\n' keyUsage=digitalSignature 'extendedKeyUsage=serverAuth,clientAuth' 'subjectAltName=IP:127.0.0.1,DNS:localhost' >member.ext
  openssl x509 -req -in member.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 90 \
    -extfile member.ext -out member.pem
  rev <<<"$password" | tr -d '\n' >member.password
} >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
rm -f -- member.csr member.ext ca.srl
echo "make_certificates: $PWD"
