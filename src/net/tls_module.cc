// SPDX-License-Identifier: Apache-2.0
// The only function that libmemspan_tls.so exports.
#include <openssl/crypto.h>

#include "net/tls.h"

// A handler of exit() may leave a job whose store uses TLS, so OpenSSL stays usable until the
// process ends.
extern "C" __attribute__((visibility("default"))) const memspan::TlsFactory* memspan_tls_factory() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  return memspan::tls_factory().value();
}
