// SPDX-License-Identifier: Apache-2.0
// The processes of several hosts, by an agent on each (docs/design/0012-oshrun-hosts.md).
//
// A node segment of our own mirrors the process states that the agents report. Entries on it are
// sent to all agents.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/agent_host.h"
#include "launcher/agent_limits.h"
#include "launcher/executor.h"
#include "launcher/host_output.h"
#include "launcher/job_order.h"
#include "launcher/launcher_input.h"
#include "store/server.h"

namespace memspan::launcher {

class RemoteExecutor final : public Executor {
 public:
  // All three must outlive it. `mirror` is of Nodes::make_one().
  static Result<std::unique_ptr<RemoteExecutor>> make(const Options& options, const Nodes& mirror,
                                                      Guard guard, EventLoop& loop);
  ~RemoteExecutor() override;

  Status start() override;
  Deadline deadline() const override;
  void serve() override;
  bool is_empty() const override;
  std::vector<int> running() const override { return {running_.begin(), running_.end()}; }
  void signal_all(int number) override;
  void ask_for_stacks() override { send_to_all({.kind = Kind::kStacks}); }
  std::vector<std::string> take_notes() override { return std::exchange(notes_, {}); }
  std::vector<Stop> take_stops() override { return std::exchange(stops_, {}); }
  std::vector<Ending> reap() override;
  std::vector<Ending> take_replaced() override { return std::exchange(replaced_, {}); }
  std::optional<ExitRequest> exit_request() override { return exit_request_; }
  std::optional<Breakdown> breakdown() const override { return breakdown_; }
  void mark_lost(const Ending& ending) override;
  void finish_output() override {}  // agents do that
  bool is_output_done() const override;
  std::size_t pending_output() const override { return output_.pending(); }

 private:
  RemoteExecutor(const Options& options, const Nodes& mirror, Guard guard, EventLoop& loop,
                 const AgentLimits& limits);
  Status open_store();
  Status call(AgentHost& host);
  bool has_started() const;
  void serve_host(AgentHost& host);
  void handle(AgentHost& host, const Message& message);
  void handle_process(const Message& message);
  void serve_output();
  void send_orders();
  void send_to_all(const Message& message);
  void check_limits();
  void lose(AgentHost& host);
  void break_down(const AgentHost& host, const std::string& reason, int code = 1);
  void watch_writers();

  const Options& options_;
  const Nodes& mirror_;
  EventLoop& loop_;
  AgentLimits limits_;
  Deadline start_ = Deadline::never();
  bool has_sent_orders_ = false;
  JobOrder order_;
  std::unique_ptr<StoreServer> store_;
  std::vector<AgentHost> hosts_;
  HostOutput output_;
  std::array<Watch, 2> output_watches_;
  LauncherInput input_;
  Watch input_watch_;
  std::set<int> running_;
  std::vector<Stop> stops_;
  std::vector<Ending> ended_;
  std::vector<Ending> replaced_;
  std::vector<std::string> notes_;
  std::optional<ExitRequest> exit_request_;
  std::optional<Breakdown> breakdown_;
  Processes shells_;  // by the hosts' numbers
};

}  // namespace memspan::launcher
