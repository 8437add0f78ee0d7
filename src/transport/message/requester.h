// SPDX-License-Identifier: Apache-2.0
// The requester's side of the connection to one peer: what is outstanding there, in the order in
// which the owner answers, and waiting for it. Connects at the first use.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "core/mutex.h"
#include "transport/link.h"
#include "transport/message/connection.h"
#include "transport/message/heartbeat.h"
#include "transport/message/message_core.h"

namespace memspan {

// Gets are asked for in pieces, and no more than ByteStream::window() at a time, so that the
// answers which an owner has to queue are bounded.
inline constexpr std::uint32_t kGetPiece = 128 << 10;
inline constexpr std::size_t kMostOutstanding = 1024;

// What a call waits for: on its stack, until the answer is here or the call gives up.
struct Completion {
  Status status;
  std::uint64_t value = 0;
};

// A request with an answer. `completion` null: a failure is told by the quiet of `context`.
struct Request {
  Frame frame;
  std::byte* to = nullptr;  // of a get
  std::uint64_t context = 0;
  Completion* completion = nullptr;
};

// Thread-safe.
class Requester final : public PollClient,
                        public FrameSink,
                        public std::enable_shared_from_this<Requester> {
 public:
  Requester(MessageCore& core, PeerAddress peer);

  // Frames without an answer. Where the last quiet followed a single operation, the next operation
  // brings the question of its quiet along, so that both take one exchange.
  Status post(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline);
  // Sends a request, once there is room in the window, and gives the number to wait for.
  Result<std::uint64_t> request(Request request, const Deadline& deadline);
  // Asks whether all operations posted before have been applied, or gives the number of the
  // question that went with the last of them.
  Result<std::uint64_t> request_quiet(std::uint64_t context, const Deadline& deadline);
  // Waits until the answers up to that number are here. `abandoned`: what nobody may write to
  // any more when the wait ends early.
  Status wait(std::uint64_t number, const Deadline& deadline, Completion* abandoned);
  // Afterwards no answer writes to memory of that call. wait() does it for its own.
  void abandon(Completion* completion);
  // The first failure of a context's operations without an answer, once.
  Status take_failure(std::uint64_t context);
  void note_failure(std::uint64_t context, const Status& status);

  // Waits until the owner has applied the puts and atomics that were posted before, where it may
  // not have applied them all.
  Status settle(const Deadline& deadline);
  // Ok, or why the peer is lost.
  Status lost();

  // Ends the connection; kPeerLost from now on.
  void lose(const Status& why);
  // Says goodbye and ends it.
  void close();
  int peer() const { return peer_.peer; }
  const std::string& peer_name() const { return peer_.name; }
  MessageCore& core() { return core_; }

  // Of the connection.
  void on_ready(std::uint32_t events) override;
  Status begin(const Frame& frame) override;
  std::byte* pin() override;
  void unpin() override;
  Status end(const Frame& frame) override;
  void on_full() override { core_.progress->give_back(); }

 private:
  struct Outstanding {
    std::uint64_t number;
    FrameType answer;
    std::uint32_t bytes;
    std::byte* to;
    std::uint64_t context;
    Completion* completion;
  };

  Result<Connection*> connect(const Deadline& deadline);
  Status greet(Connection& connection);
  void watch();
  bool is_quiet_expected(std::span<const OutFrame> frames) const MEMSPAN_REQUIRES(mutex_);
  // `number`: of the operation, among operations_.
  Status post_with_quiet(Connection& connection, std::span<const OutFrame> frames,
                         std::uint64_t number);
  std::uint64_t push_outstanding(const Request& request) MEMSPAN_REQUIRES(mutex_);
  Status after_sending(Connection& connection, const Status& sent);
  Status receive(Waiting waiting, std::size_t& bytes);
  bool has_heartbeat() const { return core_.options.silence_limit != Duration::max(); }
  Status receive_all(Connection& connection);
  Status beat(Connection& connection);
  template <typename Done>
  Status wait_until(const Deadline& deadline, Done done);
  // Ends what is outstanding. What a person reads first is `why`.
  Status fail(const Status& why, bool is_told);
  void note_failure_locked(std::uint64_t context, const Status& status) MEMSPAN_REQUIRES(mutex_);

  MessageCore& core_;
  const PeerAddress peer_;
  // Posts of puts and atomics, counted when each is over, and how many are known to be applied.
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> settled_{0};

  Mutex connecting_;  // held while one thread connects
  std::unique_ptr<Connection> made_ MEMSPAN_GUARDED_BY(connecting_);
  std::atomic<Connection*> connection_{nullptr};
  Progress::Id watched_ = 0;
  Mutex beating_;
  Heartbeat heartbeat_ MEMSPAN_GUARDED_BY(beating_);
  Mutex watching_;  // what is looked at and what is watched for go together

  std::mutex issuing_;  // a request and its place among the outstanding go together
  Mutex mutex_;
  ConditionVariable changed_;
  // Both are made with the connection: most links of a large job never have one.
  std::unique_ptr<std::deque<Outstanding>> outstanding_ MEMSPAN_GUARDED_BY(mutex_);
  using Text = std::array<std::byte, kMostText>;
  std::unique_ptr<Text> text_;  // of a refusal; of who receives
  std::uint64_t outstanding_bytes_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t issued_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t completed_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // calls of post() with such
  std::atomic<int> posting_{0};  // of them, those that may not have sent yet; grows under mutex_
  std::uint64_t quiet_operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // before the last quiet
  bool expects_quiet_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t early_quiet_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // asked with an operation; 0: none
  std::uint64_t early_operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // up to that one
  int waiting_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  bool is_pinned_ MEMSPAN_GUARDED_BY(mutex_) = false;
  bool is_text_ MEMSPAN_GUARDED_BY(mutex_) = false;  // what comes is a refusal's sentence
  bool said_goodbye_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Status> failures_ MEMSPAN_GUARDED_BY(mutex_);  // by context
};

}  // namespace memspan
