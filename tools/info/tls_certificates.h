// SPDX-License-Identifier: Apache-2.0
// What memspan-info --tls says of certificates.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "info/finding.h"
#include "net/security.h"
#include "store/store_address.h"

namespace memspan::info {

inline Finding tls_finding(std::string key, std::string text, json::Value value = {}) {
  return {
      .group = "tls", .key = std::move(key), .text = std::move(text), .value = std::move(value)};
}

// Describes them, and whether a member can use them and the store at that address, if given.
Findings certificate_findings(const StoreCertificates& certificates,
                              const std::optional<StoreAddress>& store, const Deadline& deadline);

}  // namespace memspan::info
