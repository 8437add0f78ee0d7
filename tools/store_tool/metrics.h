// SPDX-License-Identifier: Apache-2.0
// What a store tells Prometheus.
#pragma once

#include <string>

#include "store/server.h"

namespace memspan::store_tool {

std::string metrics_of(StoreServer& server);

}  // namespace memspan::store_tool
