// SPDX-License-Identifier: Apache-2.0
// One connection: chunks over a stream of UCX (chunk.h), and large payloads beside it
// (rendezvous.h).
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "transport/message/carrier.h"
#include "transport/message/ucx/chunk.h"
#include "transport/message/ucx/poll_signal.h"
#include "transport/message/ucx/receive_queue.h"

namespace memspan::ucx {

// What a channel needs of UCX.
class ChannelWorker {
 public:
  virtual ~ChannelWorker() = default;
  // Sends a chunk with its payload; the bytes are copied. False when the endpoint has failed.
  virtual bool post(ucp_ep_h endpoint, Chunk chunk, std::span<const iovec> payload) = 0;
  // Gives a buffer of the endpoint's stream back.
  virtual void release(ucp_ep_h endpoint, void* buffer) = 0;
  // As Rendezvous has them: send, fetch, drop.
  virtual bool post_large(ucp_ep_h endpoint, std::uint64_t number,
                          std::span<const iovec> payload) = 0;
  virtual void fetch(void* message, Landing& landing) = 0;
  virtual void drop(void* message) = 0;
};

// With the mutex of its worker held, but for descriptor().
class Channel {
 public:
  Channel(ChannelWorker& worker, PollSignal signal)
      : worker_(worker), signal_(std::move(signal)), queue_(*this) {}

  int descriptor() const { return signal_.descriptor(); }
  ChannelWorker& worker() { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  void set_endpoint(ucp_ep_h endpoint) { endpoint_ = endpoint; }

  // Of the side that listens.
  void open();
  // Of the side that connects: not writable until the other has said that it is open.
  void await_open() { signal_.set_writable(false); }
  bool is_open() const { return is_open_; }
  // From now on large payloads are sent by rendezvous.
  void use_rendezvous() { uses_rendezvous_ = true; }

  // What came, in a buffer of UCX's. False when nothing of the buffer is needed any more.
  bool take(void* buffer, std::size_t bytes);
  // A large payload is offered. True when it is fetched, now or later.
  bool take_large(std::uint64_t number, void* message, std::size_t bytes);
  // One that was fetched is here; or why not.
  void landed(std::string_view failure);
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
  std::size_t take_header(const std::byte* at, std::size_t bytes);
  void handle(const Chunk& chunk);
  bool send(ChunkKind kind, std::uint32_t value, std::span<const iovec> payload);
  bool send_large(std::span<const iovec> payload, std::size_t bytes);
  void announce(std::size_t bytes);
  void note_end();
  void end();
  bool is_over() const { return is_cut_ || is_finished(); }
  void give_credit(std::size_t bytes);

  ChannelWorker& worker_;
  PollSignal signal_;
  ucp_ep_h endpoint_ = nullptr;
  bool is_open_ = false;
  bool is_cut_ = false;
  bool uses_rendezvous_ = false;
  bool has_ended_ = false;  // an end was sent
  bool peer_ends_ = false;  // but not all that it sent is here
  bool peer_ended_ = false;
  std::string failure_;

  std::array<std::byte, kChunkBytes> header_{};
  std::size_t header_bytes_ = 0;
  std::size_t payload_left_ = 0;  // of the chunk that is coming
  ReceiveQueue queue_;
  std::uint64_t large_sent_ = 0;
  std::size_t uncredited_ = 0;    // read, and the peer does not know
  std::size_t credit_ = kWindow;  // what may be sent
};

}  // namespace memspan::ucx
