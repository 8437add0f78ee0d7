// SPDX-License-Identifier: Apache-2.0
// A peer that this process asks: the connection, which the first use finds or makes, and the
// outstanding requests in the order in which the peer answers.
#pragma once

#include "transport/message/connection.h"
#include "transport/message/message_core.h"

namespace memspan::inline transport {

// Gets are requested in pieces, at most Connection::window() bytes at a time. This bounds the
// answers that an owner queues.
inline constexpr std::uint32_t kGetPiece = 128 << 10;
inline constexpr std::size_t kMostOutstanding = 1024;

// The result of a call, on its stack until the answer has arrived or the call gives up.
struct Completion {
  Status status;
  std::uint64_t value = 0;
};

// A request with an answer, which repeats the frame's tag. `completion` null: the quiet of
// `context` reports a failure.
struct Request {
  Frame frame;
  std::byte* to = nullptr;  // of a get
  std::uint64_t context = 0;
  Completion* completion = nullptr;
};

enum class SendMode : std::uint8_t {
  kWait,     // returns when the carrier has all
  kQueue,    // never waits; copies what does not fit, and drops it if the peer is lost
  kControl,  // as kQueue, and goes before everything that waits
};

// All functions require the turn, except the constructor and close(), which take it, and those that
// only read constants. Calls that wait let others have it.
class Requester final : public FrameSink {
 public:
  Requester(MessageCore& core, PeerAddress address);
  ~Requester() override { close(); }

  MessageCore& core;
  Engine& engine;

  // Sends frames without an answer. If the last quiet followed a single operation, the next
  // operation also carries its quiet, so that both take one round trip. kQueue and kControl do not
  // wait for the connection either. After kTimeout or an interrupt the connection is intact.
  Status post(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline)
      MEMSPAN_REQUIRES(engine.turn);
  // Sends a request once the window has space, and returns the number to wait for.
  Result<std::uint64_t> request(Request request, const Deadline& deadline)
      MEMSPAN_REQUIRES(engine.turn);
  // Sends a request and waits for its answer, whose value it returns.
  Result<std::uint64_t> call(Request request, const Deadline& deadline)
      MEMSPAN_REQUIRES(engine.turn);
  // Asks whether all earlier operations are applied. If the last of them carried this quiet, only
  // returns its number.
  Result<std::uint64_t> request_quiet(std::uint64_t context, const Deadline& deadline)
      MEMSPAN_REQUIRES(engine.turn);
  // Waits until the answers up to that number have arrived. If the wait ends early, it calls
  // abandon(abandoned).
  Status wait(std::uint64_t number, const Deadline& deadline, const Completion* abandoned)
      MEMSPAN_REQUIRES(engine.turn);
  // After it no answer writes to memory of that call. wait() does it for its own.
  void abandon(const Completion* completion) MEMSPAN_REQUIRES(engine.turn);
  // The first failure of a context's operations without an answer, once.
  Status take_failure(std::uint64_t context) MEMSPAN_REQUIRES(engine.turn);
  void note_failure(std::uint64_t context, const Status& status) MEMSPAN_REQUIRES(engine.turn);
  // Waits until the owner has applied all earlier puts and atomics, unless they are known to be
  // applied.
  Status settle(const Deadline& deadline) MEMSPAN_REQUIRES(engine.turn);
  // Ok, or why the peer is lost.
  const Status& lost() const MEMSPAN_REQUIRES(engine.turn) { return lost_; }
  LinkState state() const { return state_.load(std::memory_order_acquire); }

  // Says goodbye. Later calls return kPeerLost. The connection stays while the peer uses it.
  void close();
  int number() const { return address_.peer; }
  const std::string& name() const { return address_.name; }

  // The rest is for PeerConnection and the transport.
  // Ends the connection and outstanding requests; later calls return kPeerLost. The handlers are
  // not called. Only the first `why` counts.
  void lose(const Status& why, LinkState end = LinkState::kLost);
  // The secret of the peer, if this requester is connecting to it and has not asked for a
  // connection of its own; or null.
  const SipKey* connects_to() const;
  // Uses that connection from now on. A failure ends it.
  Status open(PeerConnection& opened);
  // The peer that was to connect, because this side yielded, has not.
  void connect_again();
  // The connection has ended.
  void on_end(const Status& why, LinkState end);

  Status begin(const Frame& frame) override;
  std::byte* pin() override;
  void unpin() override {}
  Status end(const Frame& frame) override;

 private:
  class Connecting;

  Status await_open(const Deadline& deadline) MEMSPAN_REQUIRES(engine.turn);
  // Waits until done() or the loss of the peer. `doing` and `late` are the message of a timeout,
  // around the peer's name.
  template <typename Done>
  Status await(Done done, const Deadline& deadline, const char* late, const char* doing = "")
      MEMSPAN_REQUIRES(engine.turn);
  Status begin_connecting() MEMSPAN_REQUIRES(engine.turn);
  Status begin_opening() MEMSPAN_REQUIRES(engine.turn);
  void go_on_connecting() MEMSPAN_REQUIRES(engine.turn);
  Status greet(std::unique_ptr<ByteStream> stream) MEMSPAN_REQUIRES(engine.turn);
  Connection& connection() const;
  Status keep(std::span<const OutFrame> frames, SendMode mode) MEMSPAN_REQUIRES(engine.turn);
  Status submit(std::span<const OutFrame> frames, SendMode mode, const Deadline& deadline)
      MEMSPAN_REQUIRES(engine.turn);
  Status submit_with_quiet(std::span<const OutFrame> frames) MEMSPAN_REQUIRES(engine.turn);
  bool is_quiet_expected(std::span<const OutFrame> frames) const MEMSPAN_REQUIRES(engine.turn);
  std::uint64_t push_outstanding(const Request& request) MEMSPAN_REQUIRES(engine.turn);
  // The status of sending. A failure ends the connection, and becomes the reason of that.
  Status sent_or_cut(Status sent) MEMSPAN_REQUIRES(engine.turn);
  // lose(), and calls the handler.
  void fail(const Status& why, LinkState end) MEMSPAN_REQUIRES(engine.turn);

  const PeerAddress address_;
  // The rest is used with the turn.
  std::shared_ptr<Connecting> connecting_;  // shared with the engine
  PeerConnection* peer_ = nullptr;          // open
  // Made with the connection, which most links of a large job never have.
  std::unique_ptr<std::deque<Request>> outstanding_;
  std::uint64_t outstanding_bytes_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t operations_ = 0;        // posts of puts and atomics
  std::uint64_t settled_ = 0;           // of them, those that are known to be applied
  std::uint64_t quiet_operations_ = 0;  // before the last quiet
  bool expects_quiet_ = false;
  std::uint64_t early_quiet_ = 0;       // sent with an operation; 0: none
  std::uint64_t early_operations_ = 0;  // up to that one
  std::string text_;                    // of a refusal
  Status lost_;
  std::atomic<LinkState> state_{LinkState::kOpen};
  std::unordered_map<std::uint64_t, Status> failures_;  // by context
};

}  // namespace memspan::inline transport
