// SPDX-License-Identifier: Apache-2.0
// Counters of processes as text for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/metrics_server.h"
#include "node/counters_reader.h"

namespace memspan {

std::string metrics_of(const std::vector<CountersSeen>& processes);

// Serves this process's at MEMSPAN_METRICS, as 127.0.0.1:9464; null when it says nothing, or, with
// a line in the log, when the address is taken, which is no reason not to go on. kInvalidArgument
// for what is no address.
Result<std::unique_ptr<MetricsServer>> serve_own_metrics();
// `place` is HOST:PORT or [IPV6]:PORT; `what` names who said it, for messages.
Result<std::unique_ptr<MetricsServer>> serve_metrics(std::string_view what, std::string_view place,
                                                     MetricsServer::MakeText make_text);

}  // namespace memspan
