// SPDX-License-Identifier: Apache-2.0
#include "observe/counters_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/environment.h"
#include "core/log.h"
#include "net/endpoint.h"

namespace memspan {
namespace {

using Type = MetricsText::Type;

// The labels of a process: the first that it is a member of says whose it is.
struct Who {
  explicit Who(const CountersSeen& seen)
      : process(std::to_string(seen.process)),
        name(seen.members.empty() ? "" : seen.members.front().name),
        rank(seen.members.empty() ? "" : std::to_string(seen.members.front().rank)) {}
  std::string process;
  std::string name;
  std::string rank;
};

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

void add_calls(MetricsText& text, const std::vector<CountersSeen>& processes, std::string_view name,
               std::string_view help, std::uint64_t CallCount::*number) {
  text.begin(name, Type::kCounter, help);
  for (const CountersSeen& seen : processes) {
    if (!seen.counts_calls) continue;
    const Who who(seen);
    for (std::size_t kind = 0; kind < kCallKinds; ++kind)
      text.add({{"name", who.name},
                {"rank", who.rank},
                {"pid", who.process},
                {"kind", name_of(static_cast<CallKind>(kind))}},
               static_cast<double>(seen.calls[kind].*number));
  }
}

// One value a process.
template <typename Value>
void add_each(MetricsText& text, const std::vector<CountersSeen>& processes, std::string_view name,
              Type type, std::string_view help, Value value) {
  text.begin(name, type, help);
  for (const CountersSeen& seen : processes) {
    if (type == Type::kCounter && !seen.counts_calls) continue;
    const Who who(seen);
    text.add({{"name", who.name}, {"rank", who.rank}, {"pid", who.process}}, value(seen));
  }
}

void add_memory(MetricsText& text, const std::vector<CountersSeen>& processes,
                std::string_view name, std::string_view help, std::uint64_t MemberSeen::*number) {
  text.begin(name, Type::kGauge, help);
  for (const CountersSeen& seen : processes)
    for (const MemberSeen& member : seen.members)
      text.add({{"kind", name_of(member.kind)},
                {"name", member.name},
                {"rank", std::to_string(member.rank)},
                {"pid", std::to_string(seen.process)}},
               static_cast<double>(member.*number));
}

}  // namespace

std::string metrics_of(const std::vector<CountersSeen>& processes) {
  MetricsText text;
  text.begin("memspan_build_info", Type::kGauge, "1; the label is the version of memspan.");
  text.add({{"version", MEMSPAN_VERSION}}, 1);
  add_calls(text, processes, "memspan_calls_total", "Public calls by kind.", &CallCount::calls);
  add_calls(text, processes, "memspan_bytes_total", "Bytes that these calls moved.",
            &CallCount::bytes);
  add_each(text, processes, "memspan_waits_total", Type::kCounter,
           "Waits that were not over after some microseconds.",
           [](const CountersSeen& seen) { return static_cast<double>(seen.waits); });
  add_each(text, processes, "memspan_wait_seconds_total", Type::kCounter,
           "Time in these waits, of all threads, as far as they are over.",
           [](const CountersSeen& seen) { return seconds(seen.waited_ns); });
  add_each(text, processes, "memspan_waiting_threads", Type::kGauge,
           "Threads in a wait of more than 0.2 ms now.",
           [](const CountersSeen& seen) { return static_cast<double>(seen.waiting.size()); });
  add_each(text, processes, "memspan_longest_wait_seconds", Type::kGauge,
           "For how long the one that waits longest has waited now.", [](const CountersSeen& seen) {
             return seen.waiting.empty() ? 0 : seconds(seen.waiting.front().nanoseconds);
           });
  add_memory(text, processes, "memspan_memory_bytes",
             "The symmetric heap of a PE, or what a member gave to its pool.",
             &MemberSeen::memory_bytes);
  add_memory(text, processes, "memspan_memory_used_bytes", "Bytes of it in use.",
             &MemberSeen::memory_used);
  return text.take();
}

Result<std::unique_ptr<MetricsServer>> serve_metrics(std::string_view what, std::string_view place,
                                                     MetricsServer::MakeText make_text) {
  const auto at = Endpoint::parse_place(place);
  if (!at.is_ok())
    return Status(Code::kInvalidArgument,
                  fmt::format("{} is \"{}\": {}; allowed is HOST:PORT, as 127.0.0.1:9464", what,
                              place, at.status().message()));
  auto server = MetricsServer::listen(at->host, at->port, std::move(make_text));
  if (!server.is_ok()) return server.status().annotate(std::string(what));
  if (!(*server)->is_loopback())
    log_line(LogLevel::kWarn,
             fmt::format(
                 "{}: any process that can connect to {} can read the metrics, without a password",
                 what, place));
  return server;
}

Result<std::unique_ptr<MetricsServer>> serve_own_metrics() {
  const auto place = environment("MEMSPAN_METRICS");
  if (!place || place->empty()) return std::unique_ptr<MetricsServer>();
  auto server = serve_metrics("MEMSPAN_METRICS", *place, [] {
    const CountersRegion* const own = own_counters();
    return metrics_of({read_counters(*own, nanoseconds_of(Clock::now()))});
  });
  if (server.is_ok()) {
    log_line(LogLevel::kInfo, fmt::format("metrics are served at port {}", (*server)->port()));
    return server;
  }
  if (server.code() == Code::kInvalidArgument) return server;
  log_line(LogLevel::kWarn,
           fmt::format("no metrics of this process: {}; memspan-top --metrics serves those of all "
                       "processes of a host",
                       server.status().message()));
  return std::unique_ptr<MetricsServer>();
}

}  // namespace memspan
