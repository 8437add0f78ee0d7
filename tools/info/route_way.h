// SPDX-License-Identifier: Apache-2.0
// Which transport and carrier the settings of two ends come to.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "info/finding.h"
#include "info/route.h"
#include "transport/registry.h"
#include "world/carrier_choice.h"

namespace memspan::info {

// One end's part in the decision.
struct End {
  const ProcessFacts* facts;
  Result<AllowedTransports> allowed;
  Result<CarrierOptions> carrier;
};

// The ends that decide: the processes, else this host; at least one. They point to `from` and `to`.
std::vector<End> ends_of(const ProcessFacts& from, const ProcessFacts& to, bool are_near);

// The best transport of `candidates`.
Finding way(std::string key, const Pair& pair, const std::vector<End>& ends,
            std::initializer_list<std::string_view> candidates);

}  // namespace memspan::info
