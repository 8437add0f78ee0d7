// SPDX-License-Identifier: Apache-2.0
// A readable summary of the first certificate in a file, valid or not.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace memspan {

// A value.
struct CertificateSummary {
  std::string subject;  // "CN=a member,O=..."
  std::string issuer;
  std::vector<std::string> names;  // subject alternative names: "DNS:localhost", "URI:urn:..."
  std::string begins;              // "2026-11-25T02:44:04Z"
  std::string ends;
  std::int64_t seconds_to_begin = 0;  // below 0: it has begun
  std::int64_t seconds_to_end = 0;    // below 0: it is over
  std::string key;                    // "EC of 256 bits"
};

// kInvalidArgument: the file is missing, or has no certificate in PEM form. kNotSupported without
// TLS. Checks nothing: TlsContext::from_certificates() does.
Result<CertificateSummary> summarize_certificate(const std::string& path);

}  // namespace memspan
