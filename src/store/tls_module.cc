// SPDX-License-Identifier: Apache-2.0
// The one thing that libmemspan_tls.so exports.
#include "store/tls.h"

extern "C" __attribute__((visibility("default"))) const memspan::TlsFactory* memspan_tls_factory() {
  return &memspan::openssl_tls_factory();
}
