// SPDX-License-Identifier: Apache-2.0
// For programs that have OpenSSL linked.
#include "net/tls.h"

namespace memspan {

Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side side,
                                                                  std::string_view secret) {
  return openssl_tls_factory().from_secret(side, secret);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(
    Side side, const StoreCertificates& certificates) {
  return openssl_tls_factory().from_certificates(side, certificates);
}

Result<CertificateSummary> summarize_certificate(const std::string& path) {
  return openssl_tls_factory().summarize(path);
}

}  // namespace memspan
