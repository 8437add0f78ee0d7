// SPDX-License-Identifier: Apache-2.0
// Answers GET /metrics over HTTP with a text in Prometheus's format 0.0.4.
//
// Clients are not authenticated, so all that they can use is limited. 16 connections exist at a
// time; a new one replaces the oldest. A request has 8 KiB at most, and 5 s with
// its answer. The text is made at most every 100 ms. One thread serves all.
#pragma once

#include "observe/metrics.h"

namespace memspan::inline net {

// `place` is HOST:PORT or [IPV6]:PORT; `what` names its source in messages. kInvalidArgument for
// another one. Logs a warning when other hosts can reach it.
Result<std::unique_ptr<TextServer>> serve_metrics(std::string_view what, std::string_view place,
                                                  TextServer::MakeText make_text);

}  // namespace memspan::inline net
