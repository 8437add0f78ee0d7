// SPDX-License-Identifier: Apache-2.0
// Counters of processes as text for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/metrics_server.h"
#include "observe/counters_reader.h"

namespace memspan {

std::string metrics_of(const std::vector<CountersSeen>& processes);

// Serves this process's counters at MEMSPAN_METRICS, such as 127.0.0.1:9464; null if it is not set.
// If the address is taken, it logs a warning and returns null, because the process can continue.
// kInvalidArgument for an invalid address.
Result<std::unique_ptr<MetricsServer>> serve_own_metrics();
// `place` is HOST:PORT or [IPV6]:PORT; `what` names its source in messages.
Result<std::unique_ptr<MetricsServer>> serve_metrics(std::string_view what, std::string_view place,
                                                     MetricsServer::MakeText make_text);

}  // namespace memspan
