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
#include <cstring>
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
  Buffer* take(std::size_t bytes) {
    ++in_use_;
    const bool is_large = bytes > kBytes[0];
    auto& free = free_[is_large];
    if (free.empty())
      return new Buffer{*this, is_large,
                        std::make_unique_for_overwrite<std::byte[]>(kBytes[is_large])};
    Buffer* const buffer = free.back().release();
    free.pop_back();
    return buffer;
  }

  // Buffers taken and not given back.
  std::size_t in_use() const { return in_use_; }

 private:
  // By size, small and large: the bytes of a buffer, and how many are kept.
  static constexpr std::array<std::size_t, 2> kBytes{std::size_t{4} << 10, kMostInMessage + 64};
  static constexpr std::array<std::size_t, 2> kMostKept{64, 16};

  void give_back(Buffer* buffer) {
    --in_use_;
    std::unique_ptr<Buffer> owned(buffer);
    auto& free = free_[owned->is_large];
    if (free.size() < kMostKept[owned->is_large]) free.push_back(std::move(owned));
  }

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

inline std::size_t bytes_of(std::span<const iovec> parts) {
  std::size_t bytes = 0;
  for (const iovec& part : parts) bytes += part.iov_len;
  return bytes;
}

// One thread at a time.
class Channel {
 public:
  // Sends `most` bytes in a message.
  explicit Channel(ChannelWorker& worker, std::size_t most = kMostInMessage)
      : worker_(worker), most_(most) {}

  ChannelWorker& worker() const { return worker_; }
  ucp_ep_h endpoint() const { return endpoint_; }
  void set_endpoint(ucp_ep_h endpoint) { endpoint_ = endpoint; }
  void on_change(const std::function<void()>& call) { on_change_ = call; }

  // For the listening side.
  void open() {
    is_open_ = true;
    send_credit();
  }
  bool is_open() const { return is_open_; }

  // Takes a message from UCX. True: the channel keeps `data`, which is an offer of bytes to fetch,
  // or the bytes themselves.
  bool take(const MessageHeader& header, void* data, std::size_t bytes, bool is_offer) {
    if (is_finished()) return false;
    const bool is_data = header.kind == MessageKind::kData;
    if (header.kind < MessageKind::kData || header.kind > MessageKind::kCredit ||
        is_data != (bytes != 0) || bytes > kMostInMessage)
      fail("it sends a message of another kind");
    else if (header.taken > sent_)
      fail("it has taken what was not sent");
    if (is_finished()) return false;
    peer_taken_ = std::max(peer_taken_, header.taken);
    if (!std::exchange(is_open_, true) || (is_full_ && room() >= kLeastRoom)) tell_change();
    return header.kind != MessageKind::kCredit && take_numbered(header, data, bytes, is_offer);
  }

  void fetched(Arrival& arrival, bool is_complete) {
    --fetching_;
    arrival.is_here = is_complete;
    if (!is_complete) fail("a large message did not come");
    if (is_cut_ || !is_complete) release(arrival);
    note_here();
  }

  // As in ByteStream: 0 if nothing has arrived or the window is full.
  ssize_t read(std::span<const iovec> to) {
    if (is_cut_) return -1;
    std::size_t done = 0;
    for (const iovec& place : to) {
      auto* target = static_cast<std::byte*>(place.iov_base);
      for (std::size_t room = place.iov_len; room > 0 && is_readable();) {
        const Arrival& first = arrivals_.front();
        const auto* from = static_cast<const std::byte*>(
            first.buffer == nullptr ? first.held : first.buffer->bytes.get());
        const std::size_t bytes = std::min(room, first.bytes - read_);
        std::memcpy(target, from + read_, bytes);
        target += bytes;
        room -= bytes;
        done += bytes;
        read_ += bytes;
        if (read_ == first.bytes) pop();
      }
    }
    if (taken_ - told_ >= kTellAt && !is_over()) send_credit();
    if (done == 0 && is_over()) return -1;
    return static_cast<ssize_t>(done);
  }

  ssize_t write(std::span<const iovec> from) {
    const std::size_t all = bytes_of(from);
    std::size_t done = 0;
    std::array<iovec, kMostParts> parts;
    while (done < all && !is_over()) {
      is_full_ = room() < kLeastRoom;
      if (is_full_) break;
      const auto data = slice(from, done, std::min(all - done, most_), parts);
      if (!send(MessageKind::kData, data)) return -1;
      const std::size_t bytes = bytes_of(data);
      done += bytes;
      sent_ += bytes + kMessageCost;
    }
    return is_over() ? -1 : static_cast<ssize_t>(done);
  }

  bool is_readable() const { return next_ != whole_ && !arrivals_.front().is_end; }
  // While its caller is about to read, new bytes do not count as a change.
  void set_reading(bool is_reading) { is_reading_ = is_reading; }

  // UCX reports a failure, or the peer broke the protocol.
  void fail(std::string why) {
    if (failure_.empty()) failure_ = std::move(why);
    tell_change();
  }
  const std::string& failure() const { return failure_; }
  // Notifies the peer and discards unread bytes.
  void cut() {
    if (std::exchange(is_cut_, true)) return;
    on_change_ = nullptr;
    if (failure_.empty() && endpoint_ != nullptr) end();
    for (Arrival& arrival : arrivals_)
      if (arrival.is_here) release(arrival);
    while (next_ != whole_) pop();
  }

  bool is_cut() const { return is_cut_; }
  // Whether the peer sends nothing more.
  bool is_finished() const { return !failure_.empty() || peer_ended_; }
  // Whether the endpoint is no longer needed. After a cut it is needed until the peer has ended, or
  // until `limit`.
  bool may_close(const Deadline& limit) const {
    // Unread bytes stay readable after a failure, without the endpoint.
    if (!is_cut_) return !failure_.empty();
    return is_finished() || limit.has_passed();
  }

  // Whether UCX uses its buffers, or may report their ends.
  bool is_in_use() const { return fetching_ + sending_ > 0; }
  // UCX sends a message after post().
  void begin_sending() { ++sending_; }
  void sent(bool is_complete) {
    --sending_;
    if (!is_complete) fail("a message was not sent");
  }

 private:
  // Not each time: a credit is a message.
  static constexpr std::size_t kTellAt = kWindow / 4;
  // A message is not cut because the window is nearly full.
  static constexpr std::size_t kLeastRoom = kMostInMessage + kMessageCost;
  static constexpr std::uint64_t kMostNumbers = kWindow / kMessageCost + 1;  // and an end
  static constexpr std::size_t kMostParts = 64;                              // of a message

  // The first `bytes` of `from`, after `done`, as parts.
  static std::span<iovec> slice(std::span<const iovec> from, std::size_t done, std::size_t bytes,
                                std::array<iovec, kMostParts>& parts) {
    std::size_t count = 0;
    for (const iovec& part : from) {
      if (bytes == 0 || count == kMostParts) break;
      if (done >= part.iov_len) {
        done -= part.iov_len;
        continue;
      }
      const std::size_t here = std::min(part.iov_len - done, bytes);
      parts[count++] = {static_cast<std::byte*>(part.iov_base) + done, here};
      bytes -= here;
      done = 0;
    }
    return {parts.data(), count};
  }

  bool take_numbered(const MessageHeader& header, void* data, std::size_t bytes, bool is_offer) {
    const std::uint64_t place = header.number - next_;
    if (place < kMostNumbers && arrivals_.size() <= place) arrivals_.resize(place + 1);
    if (place >= kMostNumbers || arrivals_[place].channel != nullptr) {
      fail("it sends a message that is not its next");
      return false;
    }
    if (bytes != 0 && unread_ + bytes + kMessageCost > kWindow) {
      fail("it sends more than it was allowed to");
      return false;
    }
    Arrival& arrival = arrivals_[place];
    arrival.channel = this;
    arrival.bytes = bytes;
    arrival.is_end = header.kind == MessageKind::kEnd;
    if (bytes != 0) unread_ += bytes + kMessageCost;
    // After a cut only the peer's end matters.
    const bool is_kept = bytes != 0 && !is_cut_;
    if (is_kept && is_offer) {
      ++fetching_;
      worker_.fetch(data, arrival);
      return true;
    }
    if (is_kept) arrival.held = data;
    arrival.is_here = true;
    note_here();
    return is_kept;
  }

  // Moves on to the first message that has not arrived completely.
  void note_here() {
    const bool was_readable = is_readable();
    while (whole_ - next_ < arrivals_.size() && arrivals_[whole_ - next_].is_here) {
      if (arrivals_[whole_ - next_].is_end) peer_ended_ = true;
      ++whole_;
    }
    if (peer_ended_) end();
    // The caller does not read after a cut.
    while (is_cut_ && next_ != whole_) pop();
    if (peer_ended_ || (!was_readable && !is_reading_ && is_readable())) tell_change();
  }

  bool send(MessageKind kind, std::span<const iovec> data) {
    const std::uint64_t number = kind == MessageKind::kCredit ? 0 : number_++;
    told_ = taken_;
    if (endpoint_ != nullptr && worker_.post(*this, {kind, number, taken_}, data)) return true;
    fail("sending failed");
    return false;
  }

  bool send_credit() { return send(MessageKind::kCredit, {}); }
  std::size_t room() const { return kWindow - (sent_ - peer_taken_); }
  void end() {
    if (!std::exchange(has_ended_, true)) send(MessageKind::kEnd, {});
  }
  // The first message was read, or is not needed.
  void pop() {
    Arrival& first = arrivals_.front();
    if (first.bytes != 0) {
      taken_ += first.bytes + kMessageCost;
      unread_ -= first.bytes + kMessageCost;
    }
    release(first);
    read_ = 0;
    ++next_;
    arrivals_.pop_front();
  }

  void release(Arrival& arrival) {
    if (arrival.held != nullptr) worker_.release(std::exchange(arrival.held, nullptr));
    if (arrival.buffer != nullptr) std::exchange(arrival.buffer, nullptr)->give_back();
  }
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
