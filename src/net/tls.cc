// SPDX-License-Identifier: Apache-2.0
// By the factory of this process.
#include "net/tls.h"

namespace memspan {

Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side side,
                                                                  std::string_view secret) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->from_secret(side, secret);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(
    Side side, const StoreCertificates& certificates) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->from_certificates(side, certificates);
}

Result<CertificateSummary> summarize_certificate(const std::string& path) {
  MEMSPAN_PASS_ASSIGN(const TlsFactory* const factory, tls_factory());
  return factory->summarize(path);
}

}  // namespace memspan
