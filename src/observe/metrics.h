// SPDX-License-Identifier: Apache-2.0
// Counters of processes as text for Prometheus.
#pragma once

#include <array>
#include <functional>
#include <vector>

#include "observe/counters.h"

namespace memspan::inline observe {

// The counters of a process, as they are now (observe/counters.h). The process writes them, perhaps
// while they are read, so its numbers may be a few calls apart. Texts are truncated and made
// printable.

// Values.
struct CallCount {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;
};

struct WaitSeen {
  std::int32_t thread = 0;
  std::string call;
  std::int32_t awaited = kNobodyNamed;
  std::uint64_t nanoseconds = 0;  // so far
};

struct MemberSeen {
  MemberKind kind = MemberKind::kNone;
  std::string name;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t memory_used = 0;
};

struct CountersSeen {
  std::int32_t process = 0;
  bool counts_calls = false;
  std::vector<MemberSeen> members;
  std::array<CallCount, kCallKinds> calls;
  std::uint64_t waits = 0;
  std::uint64_t waited_ns = 0;  // of all threads, in finished waits
  std::uint32_t threads = 0;    // live ones that have counted or waited
  std::uint32_t uncounted_threads = 0;
  std::vector<WaitSeen> waiting;  // the longest first
};

// `now_ns` is CLOCK_MONOTONIC's.
CountersSeen read_counters(const CountersRegion& region, std::uint64_t now_ns);

// The text, at most `room` letters, with ? for those that a terminal might obey.
std::string printable(const char* text, std::size_t room);

std::string metrics_of(const std::vector<CountersSeen>& processes);

// Builds a text in Prometheus's format 0.0.4, metric by metric.
class MetricsText {
 public:
  enum class Type { kCounter, kGauge };
  // Call it before the metric's values. `help` is one sentence.
  void begin(std::string_view name, Type type, std::string_view help);
  // Adds a value of the last metric. `labels` are pairs of a name and a value, which is any text.
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  void add(const Labels& labels, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

// Shows a text to other programs while it lives. net/metrics_server.h serves it over HTTP; it is an
// interface because observe/ is below net/.
class TextServer {
 public:
  // Makes the text on the server's thread; may block briefly.
  using MakeText = std::function<std::string()>;

  virtual ~TextServer() = default;
  // Call in a child of fork() instead of the destructor. Closes the port.
  virtual void forget_in_child() = 0;
  virtual std::uint16_t port() const = 0;
};

}  // namespace memspan::inline observe
