// SPDX-License-Identifier: Apache-2.0
// Answers GET /metrics over HTTP with a text in Prometheus's format 0.0.4.
//
// Clients are not authenticated, so all that they can use is limited. kMostConnections exist at a
// time; a new one replaces the oldest. A request has kMostRequestBytes at most, and kPatience with
// its answer. The text is made at most every kFreshness. One thread serves all.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <thread>

#include "core/clock.h"
#include "core/fd.h"

namespace memspan {

// Thread-safe. Runs a thread of its own from listen() to destruction.
class MetricsServer {
 public:
  static constexpr std::size_t kMostConnections = 16;
  static constexpr std::size_t kMostRequestBytes = 8192;
  static constexpr Duration kPatience = std::chrono::seconds(5);
  static constexpr Duration kFreshness = std::chrono::milliseconds(100);
  // Makes the text on the server's thread; may block briefly.
  using MakeText = std::function<std::string()>;

  // Listens at a numeric address; port 0 picks a port. kSystem if the port is taken.
  static Result<std::unique_ptr<MetricsServer>> listen(const std::string& host, std::uint16_t port,
                                                       MakeText make_text);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Call in a child of fork() instead of the destructor. Closes the port.
  void forget_in_child() { listener_.reset(); }

  std::uint16_t port() const { return port_; }
  // Whether only processes of this host can reach it.
  bool is_loopback() const { return is_loopback_; }

 private:
  struct Connection;
  MetricsServer(Fd listener, std::uint16_t port, bool is_loopback, MakeText make_text);
  void run();
  // False when the connection has ended.
  bool serve(Connection& connection);
  bool read_request(Connection& connection);
  std::string answer_to(const std::string& request);
  const std::string& text();

  Fd listener_;
  const std::uint16_t port_;
  const bool is_loopback_;
  const MakeText make_text_;
  // Only the thread uses these two.
  std::string text_;
  Clock::time_point made_;
  WakeEvent ends_;
  std::thread thread_;
};

// Builds a text in this format, metric by metric.
class MetricsText {
 public:
  enum class Type { kCounter, kGauge };
  // Call it before the metric's values. `help` is one sentence.
  void begin(std::string_view name, Type type, std::string_view help);
  // Adds a value of the last metric. `labels` are pairs of a name and a value, which is any text.
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  void add(Labels labels, double value);
  std::string take() { return std::move(text_); }

 private:
  std::string name_;
  std::string text_;
};

}  // namespace memspan
