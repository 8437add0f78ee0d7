// SPDX-License-Identifier: Apache-2.0
// One connection: chunks over a stream of UCX, in both directions.
//
//   chunk: kind (4 bytes), value (4 bytes), and for data `value` bytes of payload
//
//   open     the listener's side, first: the connection stands
//   data     bytes of the ByteStream; at most kWindow of them without a credit
//   credit   `value` bytes were taken by the receiver's caller
//   end      nothing comes any more; it is answered by an end
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "core/clock.h"
#include "transport/message/carrier.h"
#include "transport/message/ucx/poll_signal.h"

namespace memspan::ucx {

inline constexpr std::uint32_t kWindow = 4 << 20;
inline constexpr std::uint32_t kMostInChunk = 256 << 10;

enum class ChunkKind : std::uint32_t {
  kOpen = 0x6d73'7001,
  kData,
  kCredit,
  kEnd,
};
struct Chunk {
  ChunkKind kind;
  std::uint32_t value;
};
inline constexpr std::size_t kChunkBytes = 8;
static_assert(sizeof(Chunk) == kChunkBytes);

// Sends a chunk with its payload; the bytes are copied.
class ChunkSender {
 public:
  virtual ~ChunkSender() = default;
  // False when the endpoint has failed.
  virtual bool post(ucp_ep_h endpoint, Chunk chunk, std::span<const iovec> payload) = 0;
};

// With the mutex of its worker held, but for descriptor().
class Channel {
 public:
  Channel(ChunkSender& sender, PollSignal signal) : sender_(sender), signal_(std::move(signal)) {}

  int descriptor() const { return signal_.descriptor(); }
  ChunkSender& sender() { return sender_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  void set_endpoint(ucp_ep_h endpoint) { endpoint_ = endpoint; }

  // Of the side that listens.
  void open();
  // Of the side that connects: not writable until the other has said that it is open.
  void await_open() { signal_.set_writable(false); }
  bool is_open() const { return is_open_; }

  // What came, in a buffer of UCX's. False when nothing of the buffer is needed any more.
  bool take(void* buffer, std::size_t bytes);
  // As ByteStream does it: 0 when there is nothing for now, or no credit.
  ssize_t read(std::span<const iovec> to);
  ssize_t write(std::span<const iovec> from);

  // UCX says that the connection has failed, or the peer sent what is not allowed.
  void fail(std::string why);
  const std::string& failure() const { return failure_; }
  // Tells the peer, and forgets what was not read.
  void cut();
  bool is_cut() const { return is_cut_; }
  // Whether nothing comes from the peer any more.
  bool is_finished() const { return !failure_.empty() || peer_ended_; }
  // Whether the endpoint is not needed any more. After a cut it is until the peer has ended, or
  // `limit`.
  bool may_close(const Deadline& limit) const;

 private:
  // Payload that was not read yet. `buffer`: to release after it, or null.
  struct Range {
    const std::byte* at;
    std::size_t bytes;
    void* buffer;
  };
  std::size_t take_header(const std::byte* at, std::size_t bytes);
  void handle(const Chunk& chunk);
  bool send(ChunkKind kind, std::uint32_t value, std::span<const iovec> payload);
  void end();
  bool is_over() const { return is_cut_ || is_finished(); }
  void give_credit(std::size_t bytes);

  ChunkSender& sender_;
  PollSignal signal_;
  ucp_ep_h endpoint_ = nullptr;
  bool is_open_ = false;
  bool is_cut_ = false;
  bool has_ended_ = false;  // an end was sent
  bool peer_ended_ = false;
  std::string failure_;

  std::array<std::byte, kChunkBytes> header_{};
  std::size_t header_bytes_ = 0;
  std::size_t payload_left_ = 0;  // of the chunk that is coming
  std::deque<Range> ranges_;
  std::size_t unread_ = 0;        // bytes of ranges_
  std::size_t uncredited_ = 0;    // read, and the peer does not know
  std::size_t credit_ = kWindow;  // what may be sent
};

}  // namespace memspan::ucx
