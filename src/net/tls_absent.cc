// SPDX-License-Identifier: Apache-2.0
// For a build without OpenSSL (cmake -DMEMSPAN_TLS=OFF): only connections without TLS work.
#include "net/tls.h"

namespace memspan::inline net {

Result<const TlsFactory*> tls_factory() {
  return Status(Code::kNotSupported,
                "this memspan was built without TLS; configure it with -DMEMSPAN_TLS=ON");
}

}  // namespace memspan::inline net
