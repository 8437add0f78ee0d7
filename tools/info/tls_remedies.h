// SPDX-License-Identifier: Apache-2.0
// Remedies for files of a secret or of certificates that a start rejects.
#pragma once

#include <string>

#include "core/status.h"
#include "net/security.h"
#include "net/tls.h"

namespace memspan::info {

// Never a command that overwrites an existing file.
std::string secret_remedy(const std::string& file);

// `failure` is what the context of that side came to.
std::string certificate_remedy(const Status& failure, const StoreCertificates& certificates,
                               TlsContext::Side side);

}  // namespace memspan::info
