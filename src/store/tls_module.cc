// SPDX-License-Identifier: Apache-2.0
// The one thing that libmemspan_tls.so exports.
#include <openssl/crypto.h>

#include "store/tls.h"

// A job may be left by a handler of exit(), and its store may speak TLS: OpenSSL stays usable until
// the process is gone.
extern "C" __attribute__((visibility("default"))) const memspan::TlsFactory* memspan_tls_factory() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return &memspan::openssl_tls_factory();
}
