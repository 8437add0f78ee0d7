// SPDX-License-Identifier: Apache-2.0
// The requester's side of the connection to one peer. It keeps outstanding requests in the order in
// which the owner answers, and waits for them. Connects at the first use.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/mutex.h"
#include "transport/link.h"
#include "transport/message/connection.h"
#include "transport/message/heartbeat.h"
#include "transport/message/message_core.h"

namespace memspan {

// Gets are requested in pieces, at most ByteStream::window() bytes at a time. This bounds the
// answers that an owner queues.
inline constexpr std::uint32_t kGetPiece = 128 << 10;
inline constexpr std::size_t kMostOutstanding = 1024;

// The result of a call, on its stack until the answer has arrived or the call gives up.
struct Completion {
  Status status;
  std::uint64_t value = 0;
};

// A request with an answer. `completion` null: the quiet of `context` reports a failure.
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

  // Sends frames without an answer. If the last quiet followed a single operation, the next
  // operation also carries its quiet, so that both take one round trip. kQueue: it does not wait
  // for the connection either.
  Status post(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline);
  // Sends a request once the window has space, and returns the number to wait for.
  Result<std::uint64_t> request(Request request, const Deadline& deadline);
  // Asks whether all earlier operations are applied. If the last of them carried this quiet, only
  // returns its number.
  Result<std::uint64_t> request_quiet(std::uint64_t context, const Deadline& deadline);
  // Waits until the answers up to that number have arrived. If the wait ends early, it calls
  // abandon(abandoned).
  Status wait(std::uint64_t number, const Deadline& deadline, Completion* abandoned);
  // After it no answer writes to memory of that call. wait() does it for its own.
  void abandon(Completion* completion);
  // The first failure of a context's operations without an answer, once.
  Status take_failure(std::uint64_t context);
  void note_failure(std::uint64_t context, const Status& status);

  // Waits until the owner has applied all earlier puts and atomics, unless they are known to be
  // applied.
  Status settle(const Deadline& deadline);
  // Ok, or why the peer is lost.
  Status lost();

  // Ends the connection; later calls return kPeerLost.
  void lose(const Status& why);
  // Says goodbye and ends it.
  void close();
  int peer() const { return peer_.peer; }
  const std::string& peer_name() const { return peer_.name; }
  MessageCore& core() { return core_; }

  // For Progress and the connection.
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
  Status begin_connecting() MEMSPAN_EXCLUDES(connecting_mutex_);
  Status go_on_connecting() MEMSPAN_EXCLUDES(connecting_mutex_);
  void stop_connecting() MEMSPAN_REQUIRES(connecting_mutex_);
  Status open(std::unique_ptr<ByteStream> stream) MEMSPAN_REQUIRES(connecting_mutex_);
  Status greet(Connection& connection);
  Result<bool> keep(std::span<const OutFrame> frames) MEMSPAN_EXCLUDES(connecting_mutex_);
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
  // Ends outstanding requests. Only the first `why` counts.
  Status fail(const Status& why, bool is_told);
  void note_failure_locked(std::uint64_t context, const Status& status) MEMSPAN_REQUIRES(mutex_);

  MessageCore& core_;
  const PeerAddress peer_;
  // Finished posts of puts and atomics, and how many of them are known to be applied.
  std::atomic<std::uint64_t> posted_{0};
  std::atomic<std::uint64_t> settled_{0};

  struct KeptFrame {
    Frame frame;
    std::vector<std::byte> payload;
  };
  struct Connecting {
    std::unique_ptr<Opening> opening;
    SipKey secret;
    Deadline until = Deadline::never();
    Progress::Id watched = 0;
    std::vector<KeptFrame> kept = {};  // to be sent when it is open
    std::size_t kept_bytes = 0;
  };
  Mutex connecting_mutex_;  // no thread waits with it
  std::unique_ptr<Connecting> connecting_ MEMSPAN_GUARDED_BY(connecting_mutex_);
  std::unique_ptr<Connection> made_ MEMSPAN_GUARDED_BY(connecting_mutex_);
  std::atomic<Connection*> connection_{nullptr};
  Progress::Id watched_ = 0;
  Mutex beating_;
  Heartbeat heartbeat_ MEMSPAN_GUARDED_BY(beating_);
  Mutex watching_;  // makes the check and the watch one step

  std::mutex issuing_;  // keeps requests sent in the order of outstanding_
  Mutex mutex_;
  ConditionVariable changed_;
  // Both are made with the connection, which most links of a large job never have.
  std::unique_ptr<std::deque<Outstanding>> outstanding_ MEMSPAN_GUARDED_BY(mutex_);
  using Text = std::array<std::byte, kMostText>;
  std::unique_ptr<Text> text_;  // of a refusal; for the receiving thread
  std::uint64_t outstanding_bytes_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t issued_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t completed_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  std::uint64_t operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // posts of puts and atomics
  std::atomic<int> posting_{0};  // of them, those that may be unsent; grows under mutex_
  std::uint64_t quiet_operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // before the last quiet
  bool expects_quiet_ MEMSPAN_GUARDED_BY(mutex_) = false;
  std::uint64_t early_quiet_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // sent with an operation; 0: none
  std::uint64_t early_operations_ MEMSPAN_GUARDED_BY(mutex_) = 0;  // up to that one
  int waiting_ MEMSPAN_GUARDED_BY(mutex_) = 0;
  bool is_pinned_ MEMSPAN_GUARDED_BY(mutex_) = false;
  bool is_text_ MEMSPAN_GUARDED_BY(mutex_) = false;  // the payload is a refusal's sentence
  bool said_goodbye_ MEMSPAN_GUARDED_BY(mutex_) = false;
  Status lost_ MEMSPAN_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Status> failures_ MEMSPAN_GUARDED_BY(mutex_);  // by context
};

}  // namespace memspan
