// SPDX-License-Identifier: Apache-2.0
// One connection: chunks over a UCX stream (chunk.h), and large payloads beside it (rendezvous.h).
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

// The UCX functions for a channel.
class ChannelWorker {
 public:
  virtual ~ChannelWorker() = default;
  // Sends a chunk with its payload; the bytes are copied. False when the endpoint has failed.
  virtual bool post(ucp_ep_h endpoint, Chunk chunk, std::span<const iovec> payload) = 0;
  // Returns a buffer of the endpoint's stream to UCX.
  virtual void release(ucp_ep_h endpoint, void* buffer) = 0;
  // As in Rendezvous: send, fetch, drop.
  virtual bool post_large(ucp_ep_h endpoint, std::uint64_t number,
                          std::span<const iovec> payload) = 0;
  virtual void fetch(void* message, Landing& landing) = 0;
  virtual void drop(void* message) = 0;
};

// The caller holds the worker's mutex, except for descriptor().
class Channel {
 public:
  Channel(ChannelWorker& worker, PollSignal signal)
      : worker_(worker), signal_(std::move(signal)), queue_(*this) {}

  int descriptor() const { return signal_.descriptor(); }
  ChannelWorker& worker() { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  void set_endpoint(ucp_ep_h endpoint) { endpoint_ = endpoint; }

  // For the listening side.
  void open();
  // For the connecting side: not writable until the peer has opened.
  void await_open() { signal_.set_writable(false); }
  bool is_open() const { return is_open_; }
  // From now on large payloads are sent by rendezvous.
  void use_rendezvous() { uses_rendezvous_ = true; }

  // Takes received bytes in a UCX buffer. False if the buffer is no longer needed.
  bool take(void* buffer, std::size_t bytes);
  // Takes the offer of a large payload. True if it is fetched, now or later.
  bool take_large(std::uint64_t number, void* message, std::size_t bytes);
  // A large payload has arrived; or why not.
  void landed(std::string_view failure);
  // As in ByteStream: 0 if nothing has arrived or there is no credit.
  ssize_t read(std::span<const iovec> to);
  ssize_t write(std::span<const iovec> from);

  // UCX reports a failure, or the peer broke the protocol.
  void fail(std::string why);
  const std::string& failure() const { return failure_; }
  // Notifies the peer and discards unread bytes.
  void cut();
  bool is_cut() const { return is_cut_; }
  // Whether the peer sends nothing more.
  bool is_finished() const { return !failure_.empty() || peer_ended_; }
  // Whether the endpoint is no longer needed. After a cut it is needed until the peer has ended, or
  // until `limit`.
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
  bool peer_ends_ = false;  // but some bytes have not arrived
  bool peer_ended_ = false;
  std::string failure_;

  std::array<std::byte, kChunkBytes> header_{};
  std::size_t header_bytes_ = 0;
  std::size_t payload_left_ = 0;  // of the current chunk
  ReceiveQueue queue_;
  std::uint64_t large_sent_ = 0;
  std::size_t uncredited_ = 0;    // read, not yet credited
  std::size_t credit_ = kWindow;  // bytes that may be sent
};

}  // namespace memspan::ucx
