// SPDX-License-Identifier: Apache-2.0
// For a build without OpenSSL (cmake -DMEMSPAN_TLS=OFF): only connections without TLS work.
#include "net/tls.h"

namespace memspan {
namespace {

Status absent() {
  return {Code::kNotSupported,
          "this memspan was built without TLS; configure it with -DMEMSPAN_TLS=ON"};
}

}  // namespace

Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side, std::string_view) {
  return absent();
}

Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(Side,
                                                                        const StoreCertificates&) {
  return absent();
}

Result<CertificateSummary> summarize_certificate(const std::string&) {
  return absent();
}

}  // namespace memspan
