// SPDX-License-Identifier: Apache-2.0
// What mends a file of a secret or of certificates that a start does not take.
#pragma once

#include <string>

#include "core/status.h"
#include "store/security.h"
#include "store/tls.h"

namespace memspan::info {

// Never a command that overwrites a file that is there.
std::string secret_remedy(const std::string& file);

// `failure` is what the context of that side came to.
std::string certificate_remedy(const Status& failure, const StoreCertificates& certificates,
                               TlsContext::Side side);

}  // namespace memspan::info
