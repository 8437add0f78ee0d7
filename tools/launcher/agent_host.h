// SPDX-License-Identifier: Apache-2.0
// What the launcher knows of one host and its agent.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "launcher/message_channel.h"
#include "launcher/options.h"
#include "launcher/processes.h"
#include "launcher/watch.h"

namespace memspan::launcher {

// Move-only. Its states follow each other; kGone may come at any time.
struct AgentHost {
  enum class State {
    kCalled,    // the remote shell runs
    kGreeted,   // the agent has answered
    kOrdered,   // it was ordered to start its processes
    kRunning,   // they run
    kFinished,  // they have ended and their output has arrived, or they could not be started
    kGone,      // the channel has ended
  };
  int number = 0;
  std::string name;
  std::string command;  // that was called, for messages
  int first_rank = 0;
  int processes = 0;
  State state = State::kCalled;
  State lost_in = State::kCalled;  // of kGone: the state before
  std::optional<MessageChannel> channel = {};
  std::array<Watch, 2> watches = {};     // of its ends
  std::optional<int> shell_status = {};  // of wait(2), when it has ended
  // While one of the channel and the shell has ended: until when the other is waited for.
  Deadline explanation = Deadline::never();

  bool has(int rank) const { return rank >= first_rank && rank < first_rank + processes; }
  bool is_open() const { return channel.has_value(); }
  // It ended too early, and why is not known yet.
  bool is_unexplained() const { return state == State::kGone && !explanation.is_never(); }
};

// Starts the remote shell of `host`, among `shells` by its number, and opens the channel.
Status call_agent(AgentHost& host, const Options& options,
                  const std::vector<std::string>& environment, Processes& shells);

// Why the agent of `host` is gone, from the state that it was in and how the remote shell ended.
std::string explain_loss(const AgentHost& host);

}  // namespace memspan::launcher
