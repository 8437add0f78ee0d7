// SPDX-License-Identifier: Apache-2.0
// Answers GET /metrics over HTTP with a text in Prometheus's format 0.0.4.
//
// Clients are not authenticated, so all that they can use is limited. kMostConnections exist at a
// time; a new one replaces the oldest. A request has kMostRequestBytes at most, and kPatience with
// its answer. The text is made at most every kFreshness. One thread serves all.
#pragma once

#include <thread>

#include "core/clock.h"
#include "core/fd.h"
#include "observe/metrics.h"

namespace memspan {

// Thread-safe. Runs a thread of its own from listen() to destruction.
class MetricsServer final : public TextServer {
 public:
  static constexpr std::size_t kMostConnections = 16;
  static constexpr std::size_t kMostRequestBytes = 8192;
  static constexpr Duration kPatience = std::chrono::seconds(5);
  static constexpr Duration kFreshness = std::chrono::milliseconds(100);

  // Listens at a numeric address; port 0 picks a port. kSystem if the port is taken.
  static Result<std::unique_ptr<MetricsServer>> listen(const std::string& host, std::uint16_t port,
                                                       MakeText make_text);
  ~MetricsServer() override;

  void forget_in_child() override { listener_.reset(); }
  std::uint16_t port() const override { return port_; }
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

// `place` is HOST:PORT or [IPV6]:PORT; `what` names its source in messages. kInvalidArgument for
// another one. Logs a warning when other hosts can reach it.
Result<std::unique_ptr<TextServer>> serve_metrics(std::string_view what, std::string_view place,
                                                  TextServer::MakeText make_text);

}  // namespace memspan
