// SPDX-License-Identifier: Apache-2.0
// By the factory of this process.
#include "net/tls.h"

namespace memspan {

Result<std::shared_ptr<const TlsContext>> TlsContext::from_secret(Side side,
                                                                  std::string_view secret) {
  const auto factory = tls_factory();
  if (!factory.is_ok()) return factory.status();
  return (*factory)->from_secret(side, secret);
}

Result<std::shared_ptr<const TlsContext>> TlsContext::from_certificates(
    Side side, const StoreCertificates& certificates) {
  const auto factory = tls_factory();
  if (!factory.is_ok()) return factory.status();
  return (*factory)->from_certificates(side, certificates);
}

Result<CertificateSummary> summarize_certificate(const std::string& path) {
  const auto factory = tls_factory();
  if (!factory.is_ok()) return factory.status();
  return (*factory)->summarize(path);
}

}  // namespace memspan
