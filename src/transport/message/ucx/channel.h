// SPDX-License-Identifier: Apache-2.0
// One connection over UCX: bytes in messages. UCX keeps no order among them, so they have numbers.
//
//   data     bytes of the ByteStream
//   end      nothing follows; the peer answers with an end when all before it have arrived
//   credit   without a number: only says how much the sender of it has taken, as each message does
//
// The listening side sends a credit first: the connection is open.
#pragma once

#include <ucp/api/ucp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "transport/message/carrier.h"

namespace memspan::ucx {

class Channel;

// Bytes of a message: a batch of frames with their headers (connection.cc).
inline constexpr std::size_t kMostInMessage = std::size_t{257} << 10;
// Without RDMA a message is smaller. With all headers it fits into one segment of UCX's TCP, so UCX
// copies no parts of it together.
inline constexpr std::size_t kMostWithoutRdma = (std::size_t{64} << 10) - 256;

// Buffers of two sizes for bytes that must stay until UCX has sent or received them. They are
// reused, so that a network registers them once, and the last one first, because it is in the
// processor's caches. One thread at a time. Outlives its buffers.
class BufferPool {
 public:
  struct Buffer {
    BufferPool& owner;
    const bool is_large;
    std::unique_ptr<std::byte[]> bytes;
    Channel* channel = nullptr;  // that sends `data`
    std::span<const std::byte> data = {};
    void give_back() { owner.give_back(this); }
  };

  // For a message with its header. The caller gives it back.
  Buffer* take(std::size_t bytes);
  // Buffers taken and not given back.
  std::size_t in_use() const { return in_use_; }

 private:
  // By size, small and large: the bytes of a buffer, and how many are kept.
  static constexpr std::array<std::size_t, 2> kBytes{std::size_t{4} << 10, kMostInMessage + 64};
  static constexpr std::array<std::size_t, 2> kMostKept{64, 16};

  void give_back(Buffer* buffer);

  std::size_t in_use_ = 0;
  std::array<std::vector<std::unique_ptr<Buffer>>, 2> free_;
};

// Costs of messages that may be on their way or unread in one direction.
inline constexpr std::size_t kWindow = std::size_t{4} << 20;
// The cost of a message beside its bytes: UCX keeps a small one in a buffer of some KiB.
inline constexpr std::size_t kMessageCost = std::size_t{2} << 10;

enum class MessageKind : std::uint64_t { kData = 0x6d73'7011, kEnd, kCredit };
struct MessageHeader {
  MessageKind kind;
  std::uint64_t number;
  std::uint64_t taken;  // costs of all messages that the receiver's caller has read
};

// A message with a number that has arrived. UCX or a buffer of our own has the bytes.
struct Arrival {
  Channel* channel = nullptr;  // null: none has this number yet
  std::size_t bytes = 0;
  void* held = nullptr;                  // bytes that UCX holds
  BufferPool::Buffer* buffer = nullptr;  // for bytes that UCX fetches
  bool is_end = false;
  bool is_here = false;
};

// The UCX functions for a channel.
class ChannelWorker {
 public:
  virtual ~ChannelWorker() = default;
  // Sends a message; the bytes are copied. False when the endpoint has failed.
  virtual bool post(Channel& channel, const MessageHeader& header, std::span<const iovec> data) = 0;
  // Fetches the bytes of a large message; Channel::fetched() follows, or has already been called.
  virtual void fetch(void* offer, Arrival& arrival) = 0;
  // Returns bytes that UCX holds.
  virtual void release(void* held) = 0;
};

// One thread at a time.
class Channel {
 public:
  // Sends `most` bytes in a message.
  explicit Channel(ChannelWorker& worker, std::size_t most = kMostInMessage)
      : worker_(worker), most_(most) {}

  ChannelWorker& worker() { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  void set_endpoint(ucp_ep_h endpoint) { endpoint_ = endpoint; }
  void on_change(const std::function<void()>& call) { on_change_ = call; }

  // For the listening side.
  void open();
  bool is_open() const { return is_open_; }

  // Takes a message from UCX. True: the channel keeps `data`, which is an offer of bytes to fetch,
  // or the bytes themselves.
  bool take(const MessageHeader& header, void* data, std::size_t bytes, bool is_offer);
  void fetched(Arrival& arrival, bool is_complete);
  // As in ByteStream: 0 if nothing has arrived or the window is full.
  ssize_t read(std::span<const iovec> to);
  ssize_t write(std::span<const iovec> from);
  bool is_readable() const;
  // While its caller is about to read, new bytes do not count as a change.
  void set_reading(bool is_reading) { is_reading_ = is_reading; }

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
  // Whether UCX uses its buffers, or may report their ends.
  bool is_in_use() const { return fetching_ + sending_ > 0; }
  // UCX sends a message after post().
  void begin_sending() { ++sending_; }
  void sent(bool is_complete);

 private:
  bool take_numbered(const MessageHeader& header, void* data, std::size_t bytes, bool is_offer);
  void note_here();
  bool send(MessageKind kind, std::span<const iovec> data);
  bool send_credit() { return send(MessageKind::kCredit, {}); }
  std::size_t room() const { return kWindow - (sent_ - peer_taken_); }
  void end();
  void pop();
  void release(Arrival& arrival);
  bool is_over() const { return is_cut_ || is_finished(); }
  void tell_change() {
    if (on_change_) on_change_();
  }

  ChannelWorker& worker_;
  const std::size_t most_;
  ucp_ep_h endpoint_ = nullptr;
  std::function<void()> on_change_;
  bool is_open_ = false;
  bool is_reading_ = false;
  bool is_cut_ = false;
  bool has_ended_ = false;  // an end was sent
  bool peer_ended_ = false;
  std::string failure_;

  std::deque<Arrival> arrivals_;  // from the number next_ on
  std::uint64_t next_ = 0;        // the first that is not read completely
  std::uint64_t whole_ = 0;       // the first that has not arrived completely
  std::size_t read_ = 0;          // bytes of the message next_
  std::size_t unread_ = 0;        // costs of arrivals_
  int fetching_ = 0;
  int sending_ = 0;
  std::uint64_t taken_ = 0;  // costs of messages that were read
  std::uint64_t told_ = 0;   // of that, what was sent to the peer

  std::uint64_t number_ = 0;  // of the next message
  std::uint64_t sent_ = 0;    // costs
  std::uint64_t peer_taken_ = 0;
  bool is_full_ = false;  // write() sent nothing
};

}  // namespace memspan::ucx
