// SPDX-License-Identifier: Apache-2.0
// The messages between oshrun and its agents, over the stdin and stdout of a remote shell: a u32
// length, then a Message. Before it an agent writes one line, the greeting.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/fd.h"
#include "core/status.h"

namespace memspan::launcher {

enum class Kind : std::uint8_t {
  // To the agent.
  kJob,     // text: JobOrder
  kSignal,  // value: its number
  kStacks,  // asks for them: Executor::ask_for_stacks()
  kLost,    // rank, process, value: as PeerSlot::wait_status
  kInput,   // text: of rank 0's stdin; empty at its end
  // From the agent.
  kStarted,
  kFailed,    // value: what the launcher returns; text: why
  kState,     // rank, process, value: PeerState
  kLibrary,   // a process has loaded memspan
  kStopped,   // rank, value: as Stop::number
  kEnded,     // rank, process, value: of wait(2)
  kReplaced,  // rank, process
  kOutput,    // rank: the stream (1 or 2); text
  kNote,      // text: a line for the user
  kDone,      // all processes have ended, and all output was sent
  // Both ways.
  kExit,   // rank, value: the code of shmem_global_exit
  kTaken,  // rank: the stream (0: input); value: so many bytes of it have been passed on
  kAlive,
};

// A value.
struct Message {
  Kind kind = Kind::kAlive;
  int rank = 0;
  int process = 0;
  int value = 0;
  std::string text = {};
};

// The most bytes of a stream that are on their way without a kTaken.
inline constexpr std::size_t kWindowBytes = std::size_t{256} << 10;

// The first line of an agent, with the version and its end. Both sides must be of one version.
std::string greeting();

// How long the other side may be silent before it has said its own limit, which is never shorter.
inline constexpr Duration kUsualSilence = std::chrono::seconds(10);

// Owns both descriptors and makes them non-blocking. One thread at a time.
class MessageChannel {
 public:
  static Result<MessageChannel> make(Fd in, Fd out);

  int in() const { return in_.get(); }
  int out() const { return out_.get(); }

  // Sends as much as possible now; wants_to_write() reports a rest for flush(). A closed channel
  // drops the data, and receive() returns false.
  void send(const Message& message);
  void send_line(const std::string& line);
  void flush();
  bool wants_to_write() const { return sent_ < outgoing_.size(); }

  // Reads the available data. False when nothing more will come.
  bool receive();
  // The other side sees the end; what comes from there still can be received.
  void close_out() { out_.reset(); }
  void drop_received() { incoming_.clear(); }
  // The first line, with its end, as far as it has come and up to a bound; nullopt while it may
  // still grow.
  std::optional<std::string> take_line();
  // The next whole message; kInvalidArgument for other data.
  Result<std::optional<Message>> next();

  // When something came last.
  Clock::time_point heard() const { return heard_; }
  // Sends kAlive when nothing was sent for a quarter of the limit.
  void keep_alive(Duration limit);
  bool is_silent(Duration limit) const { return Clock::now() - heard_ > limit; }
  void forgive_silence() { heard_ = Clock::now(); }

 private:
  MessageChannel(Fd in, Fd out) : in_(std::move(in)), out_(std::move(out)) {}
  Fd in_;
  Fd out_;
  bool is_open_ = true;  // for reading
  std::string incoming_;
  std::string outgoing_;
  std::size_t sent_ = 0;  // of outgoing_
  Clock::time_point heard_ = Clock::now();
  Clock::time_point told_ = Clock::now();
};

}  // namespace memspan::launcher
