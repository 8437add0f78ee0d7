// SPDX-License-Identifier: Apache-2.0
#include "store_tool/metrics.h"

#include <string_view>

#include "observe/metrics.h"

namespace memspan::store_tool {
namespace {

constexpr Duration kPatience = std::chrono::seconds(1);

struct Metric {
  std::string_view name;
  MetricsText::Type type;
  std::string_view help;
  double value;
};

double number(std::uint64_t value) {
  return static_cast<double>(value);
}

}  // namespace

std::string metrics_of(StoreServer& server) {
  constexpr auto kGauge = MetricsText::Type::kGauge;
  constexpr auto kCounter = MetricsText::Type::kCounter;
  MetricsText text;
  text.begin("memspan_build_info", kGauge, "1; the label is the version of memspan.");
  text.add({{"version", MEMSPAN_VERSION}}, 1);
  const auto counted = server.statistics(kPatience);
  text.begin("memspan_store_up", kGauge, "1 when the store answered within a second.");
  text.add({}, counted.is_ok() ? 1 : 0);
  if (!counted.is_ok()) return text.take();
  const StoreStatistics& now = *counted;
  const Metric metrics[] = {
      {"memspan_store_members", kGauge, "Members that are connected.", number(now.members)},
      {"memspan_store_connections", kGauge, "Connections, including those not yet authenticated.",
       number(now.connections)},
      {"memspan_store_keys", kGauge, "Keys.", number(now.keys)},
      {"memspan_store_key_bytes", kGauge, "Bytes of keys and values.", number(now.key_bytes)},
      {"memspan_store_waits", kGauge, "Requests that wait for keys.", number(now.waits)},
      {"memspan_store_watches", kGauge, "Watches of members.", number(now.watches)},
      {"memspan_store_session_bytes", kGauge, "Bytes that are kept for members, keys aside.",
       number(now.session_bytes)},
      {"memspan_store_unread_bytes", kGauge, "Bytes of answers that members have not read yet.",
       number(now.unread_bytes)},
      {"memspan_store_accepted_total", kCounter, "Connections that were accepted.",
       number(now.accepted)},
      {"memspan_store_refused_total", kCounter, "Connections that were refused.",
       number(now.refused)},
      {"memspan_store_requests_total", kCounter, "Requests of members.", number(now.requests)}};
  for (const Metric& metric : metrics) {
    text.begin(metric.name, metric.type, metric.help);
    text.add({}, metric.value);
  }
  return text.take();
}

}  // namespace memspan::store_tool
