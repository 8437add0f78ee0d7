// SPDX-License-Identifier: Apache-2.0
// The processes of this host.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "launcher/executor.h"
#include "launcher/forwarding.h"
#include "launcher/job.h"
#include "launcher/processes.h"
#include "launcher/stack_request.h"
#include "launcher/store_desk.h"
#include "launcher/terminal_input.h"
#include "launcher/watch.h"

namespace memspan::launcher {

class LocalExecutor final : public Executor {
 public:
  // The job and the loop must outlive it.
  static Result<std::unique_ptr<LocalExecutor>> make(const Job& job, Guard guard, EventLoop& loop);

  Status start() override;
  Deadline deadline() const override { return stacks_.deadline(); }
  void serve() override;
  bool is_empty() const override { return processes_.is_empty(); }
  std::vector<int> running() const override { return processes_.running(); }
  void signal_all(int number) override;
  void ask_for_stacks() override { ask_for_stacks(Mute::kSpared); }
  std::vector<std::string> take_notes() override { return stacks_.take_notes(); }
  std::vector<Stop> take_stops() override { return processes_.take_stops(); }
  std::vector<Ending> reap() override;
  std::vector<Ending> take_replaced() override;
  std::optional<ExitRequest> exit_request() override { return job_.nodes().exit_request(); }
  std::optional<Breakdown> breakdown() const override { return std::nullopt; }
  void mark_lost(const Ending& ending) override;
  void finish_output() override { forwarding_->finish_all(); }
  bool is_output_done() const override { return forwarding_->pending() == 0; }
  std::size_t pending_output() const override { return forwarding_->pending(); }

 private:
  // A member that will not answer for its stacks: SIGUSR2 may end it.
  enum class Mute { kSpared, kSignalled };

  LocalExecutor(const Job& job, Guard guard, EventLoop& loop,
                std::unique_ptr<Forwarding> forwarding);
  PeerState state_of(int rank) const;
  void ask_for_stacks(Mute mute);
  Status start_one(Spawner& spawner, std::size_t program, int rank);
  void watch_terminal();
  void serve_terminal();
  void serve_store(int index);
  void serve_output();
  int rank_of(int index) const { return job_.first_rank() + index; }
  int index_of(int rank) const { return rank - job_.first_rank(); }

  const Job& job_;
  EventLoop& loop_;
  StoreDesk store_;  // by index on this host
  std::vector<Watch> store_watches_;
  std::unique_ptr<Forwarding> forwarding_;
  std::optional<TerminalInput> terminal_;
  Watch terminal_watch_;
  bool is_terminal_paused_ = false;
  std::vector<Ending> replaced_;
  StackRequest stacks_;
  Processes processes_;
};

}  // namespace memspan::launcher
