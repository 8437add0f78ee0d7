// SPDX-License-Identifier: Apache-2.0
#include "observe/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>

namespace memspan::inline observe {
namespace {

// The format escapes backslash, quote and end of line.
std::string escaped(std::string_view value) {
  std::string result;
  for (const char letter : value) {
    if (letter == '\\' || letter == '"') result += '\\';
    if (letter == '\n')
      result += "\\n";
    else
      result += letter;
  }
  return result;
}

WaitSeen read_wait(const ThreadCounters& thread, std::uint64_t since, std::uint64_t now) {
  char text[sizeof thread.what];
  thread.copy_what(text);
  return {.thread = thread.thread.load(std::memory_order_relaxed),
          .call = printable(text, sizeof text),
          .awaited = thread.awaited.load(std::memory_order_relaxed),
          .nanoseconds = now > since ? now - since : 0};
}

using Type = MetricsText::Type;

// The first that a process is a member of says whose it is.
MetricsText::Labels labels_of(const CountersSeen& seen) {
  const bool is_member = !seen.members.empty();
  return {{"name", is_member ? seen.members.front().name : ""},
          {"rank", is_member ? std::to_string(seen.members.front().rank) : ""},
          {"pid", std::to_string(seen.process)}};
}

double seconds(std::uint64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

void add_calls(MetricsText& text, const std::vector<CountersSeen>& processes, std::string_view name,
               std::string_view help, std::uint64_t CallCount::*number) {
  text.begin(name, Type::kCounter, help);
  for (const CountersSeen& seen : processes)
    for (std::size_t kind = 0; seen.counts_calls && kind < kCallKinds; ++kind) {
      auto labels = labels_of(seen);
      labels.emplace_back("kind", name_of(static_cast<CallKind>(kind)));
      text.add(labels, static_cast<double>(seen.calls[kind].*number));
    }
}

// One value a process.
template <typename Value>
void add_each(MetricsText& text, const std::vector<CountersSeen>& processes, std::string_view name,
              Type type, std::string_view help, Value value) {
  text.begin(name, type, help);
  for (const CountersSeen& seen : processes)
    if (type == Type::kGauge || seen.counts_calls) text.add(labels_of(seen), value(seen));
}

void add_memory(MetricsText& text, const std::vector<CountersSeen>& processes,
                std::string_view name, std::string_view help, std::uint64_t MemberSeen::*number) {
  text.begin(name, Type::kGauge, help);
  for (const CountersSeen& seen : processes)
    for (const MemberSeen& member : seen.members)
      text.add({{"kind", std::string(name_of(member.kind))},
                {"name", member.name},
                {"rank", std::to_string(member.rank)},
                {"pid", std::to_string(seen.process)}},
               static_cast<double>(member.*number));
}

}  // namespace

std::string printable(const char* text, std::size_t room) {
  std::string result(text, strnlen(text, room));
  for (char& letter : result)
    if (std::isprint(static_cast<unsigned char>(letter)) == 0) letter = '?';
  return result;
}

CountersSeen read_counters(const CountersRegion& region, std::uint64_t now_ns) {
  CountersSeen seen;
  seen.process = region.header.process;
  seen.counts_calls = region.header.counts_calls.load(std::memory_order_relaxed) != 0;
  seen.uncounted_threads = region.header.uncounted.load(std::memory_order_relaxed);
  for (const MemberSlot& slot : region.members) {
    const MemberKind kind = slot.kind.load(std::memory_order_acquire);
    if (kind == MemberKind::kNone) continue;
    seen.members.push_back({kind, printable(slot.name, sizeof slot.name),
                            slot.rank.load(std::memory_order_relaxed),
                            slot.size.load(std::memory_order_relaxed),
                            slot.memory_bytes.load(std::memory_order_relaxed),
                            slot.memory_used.load(std::memory_order_relaxed)});
  }
  const std::size_t threads = std::min<std::size_t>(
      region.header.threads.load(std::memory_order_relaxed), kMostCountedThreads);
  for (std::size_t i = 0; i < threads; ++i) {
    const ThreadCounters& thread = region.threads[i];
    for (std::size_t kind = 0; kind < kCallKinds; ++kind) {
      seen.calls[kind].calls += thread.calls[kind].load(std::memory_order_relaxed);
      seen.calls[kind].bytes += thread.bytes[kind].load(std::memory_order_relaxed);
    }
    seen.waits += thread.waits.load(std::memory_order_relaxed);
    seen.waited_ns += thread.waited_ns.load(std::memory_order_relaxed);
    if (thread.thread.load(std::memory_order_relaxed) != 0) ++seen.threads;
    // Pairs with the release of begin_wait().
    const std::uint64_t since = thread.waiting_since.load(std::memory_order_acquire);
    if (since == 0) continue;
    seen.waiting.push_back(read_wait(thread, since, now_ns));
  }
  std::ranges::sort(seen.waiting, std::greater{}, &WaitSeen::nanoseconds);
  return seen;
}

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

void MetricsText::begin(std::string_view name, Type type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name,
                       type == Type::kCounter ? "counter" : "gauge");
}

void MetricsText::add(const Labels& labels, double value) {
  text_ += name_;
  std::string_view before = "{";
  for (const auto& [name, text] : labels) {
    text_ += fmt::format("{}{}=\"{}\"", before, name, escaped(text));
    before = ",";
  }
  text_ += fmt::format("{} {}\n", labels.empty() ? "" : "}", value);
}

}  // namespace memspan::inline observe
