// SPDX-License-Identifier: Apache-2.0
// The metrics of a store, for Prometheus.
#pragma once

#include <string>

#include "store/server.h"

namespace memspan::store_tool {

std::string metrics_of(StoreServer& server);

}  // namespace memspan::store_tool
