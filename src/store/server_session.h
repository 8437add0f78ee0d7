// SPDX-License-Identifier: Apache-2.0
// The server's end of one connection: handshake, greeting, then requests in and answers out.
//
//   stream --read--> StoreFrameReader --> hello, then requests --> Owner
//   stream <-write-- queue of frames <-- send()
//
// A session closes if its peer breaks the protocol, has not said hello in time, or takes too long
// over one frame. Other sessions are not affected. A session stops reading from a peer that does
// not read its answers, and dismisses the peer if too many are queued. It also dismisses a peer for
// lack of memory.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>

#include <deque>
#include <exception>
#include <new>
#include <span>
#include <unordered_map>

#include "net/byte_channel.h"
#include "net/event_loop.h"
#include "net/tcp.h"
#include "store/charges.h"
#include "store/headroom.h"

namespace memspan::inline store {

// Frames that wait to be sent, in one queue or in several together, and how many bytes they are in
// memory: a value that many of them share counts once. One thread at a time.
class StoreBacklog {
 public:
  void add(const StoreFrame& frame) {
    bytes_ += head_bytes(frame);
    if (frame.value.empty()) return;
    if (++shared_[frame.value.identity()] == 1) bytes_ += frame.value.size();
  }

  // `frame` must have been added.
  void remove(const StoreFrame& frame) {
    bytes_ -= head_bytes(frame);
    const auto found = shared_.find(frame.value.identity());
    if (frame.value.empty() || found == shared_.end() || --found->second > 0) return;
    bytes_ -= frame.value.size();
    shared_.erase(found);
  }

  std::size_t bytes() const { return bytes_; }

 private:
  static std::size_t head_bytes(const StoreFrame& frame) {
    return sizeof frame + frame.head.size();
  }

  std::size_t bytes_ = 0;
  std::unordered_map<const void*, std::uint32_t> shared_;  // frames that have that value
};

// Only for the loop's thread. Shared by its owner and by the loop's callbacks; the last of them
// destroys it.
class StoreSession : public std::enable_shared_from_this<StoreSession> {
 public:
  // Keeps the sessions. Must exist until they are closed.
  class Owner {
   public:
    // Decides about a hello; any code but kOk refuses it. Requests follow.
    virtual StoreWelcome greet(SessionId from, const StoreHello& hello,
                               const ByteChannel& stream) = 0;
    // Bytes arrived, perhaps only a part of a message.
    virtual void spoke(SessionId from) = 0;
    virtual void serve(SessionId from, StoreRequest request) = 0;
    // The last call for that session; made once, also after close(). `why` is the cause of the end;
    // kAuth means a failed authentication.
    virtual void closed(SessionId id, const Status& why) = 0;

   protected:
    ~Owner() = default;
  };

  // Shared by all sessions of a thread; must outlive them.
  struct Shared {
    EventLoop& loop;
    std::span<char> chunk;  // buffer to read into
    StoreBacklog& backlog;  // the frames of all queues
    Headroom& headroom;
  };
  StoreSession(Owner& owner, SessionId id, std::unique_ptr<ByteChannel> stream, Shared shared,
               StorePatience patience)
      : owner_(owner), id_(id), stream_(std::move(stream)), shared_(shared), limits_(patience) {}

  void start() {
    auto watched = shared_.loop.watch(
        stream_->socket(), 0,
        [self = shared_from_this()](std::uint32_t events) { self->on_ready(events); });
    if (!watched.is_ok()) return close(watched.status());
    watch_ = *watched;
    patience_ = shared_.loop.call_at(Clock::now() + limits_.hello, [self = shared_from_this()] {
      if (self->stage_ != Stage::kServing)
        self->run([&] { self->close(lost("it did not say hello in time")); });
    });
    run([&] { shake_hands(); });
  }

  void send(const StoreAnswer& answer) {
    if (stage_ == Stage::kServing) run([&] { queue(encode_sharing(answer)); });
  }

  // Drops unsent frames.
  void close(const Status& why) {
    if (stage_ == Stage::kClosed) return;
    const bool was_dismissed = stage_ == Stage::kDismissed;
    stage_ = Stage::kClosed;
    drop_queue();
    shared_.loop.cancel(watch_);
    ::shutdown(stream_->socket(), SHUT_RDWR);  // a child of fork() may hold it open
    stream_.reset();
    for (const EventLoop::Token timer : {patience_, reading_, writing_}) shared_.loop.cancel(timer);
    owner_.closed(id_, was_dismissed ? dismissal_ : why);
  }

  // Sends `why` to the peer, as far as it reads that in time, and closes.
  // Drops the queue except its first frame: the stream may have sent a part of it, and must send
  // all.
  void dismiss(const Status& why) {
    if (stage_ == Stage::kDismissed) return;
    if (stage_ != Stage::kServing) return close(why);
    stage_ = Stage::kDismissed;
    try {
      dismissal_ = why;
      std::optional<StoreFrame> begun;
      if (!queue_.empty()) begun = queue_.front();
      drop_queue();
      if (begun) queue(std::move(*begun));
      queue(encode_sharing({.id = kFarewellId,
                            .code = Code::kStoreLost,
                            .message = "it ended this session: " + why.message()}));
      write();
    } catch (const std::exception&) {
      close(why);
    }
  }

  // Memory of the unsent frames, in bytes.
  std::size_t queued() const { return backlog_.bytes(); }
  bool is_serving() const { return stage_ == Stage::kServing; }
  // Only while is_serving().
  const ByteChannel& stream() const { return *stream_; }

 private:
  enum class Stage { kHandshake, kGreeting, kServing, kRefusing, kDismissed, kClosed };
  // At most one answer of the largest size may wait while the next request is read.
  static constexpr std::size_t kMaxUnsentBytes = kMaxValueBytes;
  // Chunks taken from one connection, and bytes sent to one, before the others get their turn.
  static constexpr int kChunksInARow = 8;
  static constexpr std::size_t kBytesInARow = std::size_t{1} << 20;

  // Beyond this, check for memory before reading more.
  static constexpr std::size_t kLargeFrame = std::size_t{256} << 10;

  // A fatal protocol_version alert, as TLS 1.0 to 1.3 read it.
  static constexpr std::string_view kProtocolVersionAlert{"\x15\x03\x01\x00\x02\x02\x46", 7};

  static bool is_tls_record(std::string_view bytes) { return bytes.starts_with("\x16\x03"); }

  static Status lost(std::string why) { return {Code::kStoreLost, std::move(why)}; }

  static std::string another_version(const StoreHello& hello) {
    const bool is_old = hello.release.empty();
    return fmt::format(
        "{} runs memspan {}, this store " MEMSPAN_VERSION
        ": a store and its members must have one version (their protocols are {} and {})",
        is_old ? "this process" : hello.member, is_old ? "of an older version" : hello.release,
        hello.version, kStoreProtocolVersion);
  }

  // Runs a callback. An exception for lack of memory dismisses only this session.
  template <typename Step>
  void run(Step step) {
    try {
      step();
    } catch (const std::exception&) {
      shared_.headroom.free();
      if (stage_ == Stage::kDismissed) return close(dismissal_);  // no memory even for the farewell
      dismiss({Code::kOutOfMemory, "the store's process has no memory for what this member asks"});
    }
  }

  void shake_hands() {
    if (!goes_on(stream_->handshake())) return;
    stage_ = Stage::kGreeting;
    read();
  }

  void on_ready(std::uint32_t events) {
    const bool has_ended = (events & (EPOLLHUP | EPOLLERR)) != 0;
    // A peer that is gone reads no answers, and no read of a paused session would find that out.
    if (has_ended && !is_reading_ && !is_writing_) return close(lost("its connection ended"));
    if (is_reading_ && ((events & EPOLLIN) != 0 || has_ended)) {
      is_reading_ = false;
      run([&] {
        owner_.spoke(id_);
        if (stage_ == Stage::kHandshake)
          shake_hands();
        else
          read();
      });
    }
    if (is_writing_ && ((events & EPOLLOUT) != 0 || has_ended)) {
      is_writing_ = false;
      run([&] {
        if (stage_ == Stage::kHandshake)
          shake_hands();
        else if (stage_ != Stage::kClosed)
          write();
      });
    }
    watch();
  }

  // Watches for what is awaited.
  void watch() {
    const std::uint32_t wanted = (is_reading_ ? EPOLLIN : 0U) | (is_writing_ ? EPOLLOUT : 0U);
    if (stage_ == Stage::kClosed || wanted == watched_) return;
    watched_ = wanted;
    shared_.loop.change(watch_, wanted);
  }

  void read() {
    for (int i = 0; i < kChunksInARow; ++i) {
      take_frames();
      if (is_paused_ || (stage_ != Stage::kGreeting && stage_ != Stage::kServing)) return;
      const ChannelStep step = stream_->read(shared_.chunk.data(), shared_.chunk.size());
      if (!goes_on(step)) return;
      const std::string_view bytes(shared_.chunk.data(), step.bytes);
      if (!std::exchange(has_read_, true) && is_tls_record(bytes)) return refuse_tls();
      // The reader may have to move to twice its size.
      if (reader_.held() > kLargeFrame && !Headroom::is_there(2 * reader_.held()))
        throw std::bad_alloc();
      reader_.feed(bytes);
      owner_.spoke(id_);
    }
    read_soon();
  }

  // The peer speaks TLS, and this store does not (under TLS, no record is seen here). A TLS alert
  // makes the peer fail at once; otherwise it would retry, as if the store were about to start.
  void refuse_tls() {
    static_cast<void>(stream_->write(kProtocolVersionAlert));
    close({Code::kAuth, "the other side speaks TLS, and this store was configured without it"});
  }

  void read_soon() {
    shared_.loop.call_soon([self = shared_from_this()] {
      if (self->stage_ == Stage::kGreeting || self->stage_ == Stage::kServing)
        self->run([&] { self->read(); });
    });
  }

  // Pauses when the peer has too many unread answers; write() resumes it.
  void take_frames() {
    while (stage_ == Stage::kGreeting || stage_ == Stage::kServing) {
      is_paused_ = unsent_ > kMaxUnsentBytes;
      if (is_paused_) return;
      auto frame = reader_.next();
      if (reader_.is_broken())
        return close({Code::kInvalidArgument, "it sent a frame that is empty or too long"});
      if (!frame) return time_frame(reading_, reader_.has_part());
      time_frame(reading_, false);
      take_frame(*frame);
    }
  }

  void take_frame(std::string_view body) {
    if (stage_ == Stage::kGreeting) return greet(body);
    auto request = decode_request(body);
    if (!request.is_ok()) return close(request.status());
    owner_.serve(id_, std::move(request).value());
  }

  void greet(std::string_view body) {
    auto hello = decode_hello(body);
    if (!hello.is_ok()) return close(hello.status());
    const StoreWelcome welcome =
        hello->version == kStoreProtocolVersion
            ? owner_.greet(id_, *hello, *stream_)
            : StoreWelcome{.code = Code::kNotSupported, .message = another_version(*hello)};
    const bool is_welcome = welcome.code == Code::kOk;
    stage_ = is_welcome ? Stage::kServing : Stage::kRefusing;
    if (is_welcome) {
      shared_.loop.cancel(patience_);
      reader_.set_limit(kMaxFrameBytes);
    }
    queue({.head = encode(welcome)});
  }

  void queue(StoreFrame frame) {
    queue_.push_back(std::move(frame));
    unsent_ += queue_.back().size();
    backlog_.add(queue_.back());
    shared_.backlog.add(queue_.back());
    if (stage_ == Stage::kDismissed) return;
    if (backlog_.bytes() > limits_.queued)
      return dismiss(
          {Code::kOutOfMemory,
           fmt::format("it left {} bytes of answers and events unread, at most {} are kept "
                       "for one member",
                       backlog_.bytes(), limits_.queued)});
    if (queue_.size() == 1) write();
  }

  void write() {
    std::size_t in_a_row = 0;
    while (!queue_.empty()) {
      const StoreFrame& frame = queue_.front();
      const bool is_in_head = sent_ < frame.head.size();
      const std::string_view piece = is_in_head ? frame.head : frame.value.text();
      const ChannelStep step =
          stream_->write(piece.substr(is_in_head ? sent_ : sent_ - frame.head.size()));
      if (!goes_on(step)) return time_frame(writing_, true);
      sent_ += step.bytes;
      in_a_row += step.bytes;
      if (sent_ == frame.size()) end_frame();
      if (in_a_row >= kBytesInARow && !queue_.empty()) return write_soon();
    }
    if (stage_ == Stage::kRefusing) close(lost("it was refused"));
    if (stage_ == Stage::kDismissed) close(dismissal_);
  }

  // The socket is writable, but other sessions have their turn.
  void write_soon() {
    time_frame(writing_, sent_ > 0);
    is_writing_ = true;
    watch();
  }

  // The first frame of the queue was sent.
  void end_frame() {
    unsent_ -= queue_.front().size();
    backlog_.remove(queue_.front());
    shared_.backlog.remove(queue_.front());
    queue_.pop_front();
    sent_ = 0;
    time_frame(writing_, false);
    if (!is_paused_ || unsent_ > kMaxUnsentBytes) return;
    is_paused_ = false;
    read_soon();
  }

  void drop_queue() {
    for (const StoreFrame& frame : queue_) shared_.backlog.remove(frame);
    queue_.clear();
    backlog_ = {};
    unsent_ = 0;
  }

  // Limits the time from the first byte of a frame to its last, in one direction.
  // Before the hello, patience_ limits everything.
  void time_frame(EventLoop::Token& timer, bool has_begun) {
    const bool is_timed = stage_ == Stage::kServing || stage_ == Stage::kDismissed;
    if (!is_timed || (timer != 0) == has_begun) return;
    if (!has_begun) return shared_.loop.cancel(std::exchange(timer, 0));
    timer = shared_.loop.call_at(Clock::now() + limits_.frame, [self = shared_from_this()] {
      self->run([&] {
        // The full buffer of a peer that reads nothing would hold back a normal end.
        if (!self->queue_.empty()) reset_on_close(self->stream_->socket());
        self->close(lost(fmt::format("it took longer than {:.0f} s over one frame",
                                     to_seconds(self->limits_.frame))));
      });
    });
  }

  // True if the step was done. Otherwise the session waits, or is closed.
  bool goes_on(const ChannelStep& step) {
    using Next = ChannelStep::Next;
    if (step.next == Next::kDone) return true;
    if (step.next == Next::kEnd) close(lost("its connection to the store ended"));
    if (step.next == Next::kFailed) close(step.failure);
    if (step.next == Next::kReadable) is_reading_ = true;
    if (step.next == Next::kWritable) is_writing_ = true;
    watch();
    return false;
  }

  Owner& owner_;
  const SessionId id_;
  std::unique_ptr<ByteChannel> stream_;  // null when closed
  const Shared shared_;
  EventLoop::Token watch_ = 0;  // of the stream's socket
  std::uint32_t watched_ = 0;   // the events
  const StorePatience limits_;
  EventLoop::Token patience_ = 0;  // for the hello
  EventLoop::Token reading_ = 0;   // for a frame that has begun
  EventLoop::Token writing_ = 0;   // the same
  Stage stage_ = Stage::kHandshake;
  bool is_reading_ = false;  // it waits for bytes
  bool is_writing_ = false;  // it waits to write
  bool is_paused_ = false;   // not reading until the queue is shorter
  bool has_read_ = false;
  StoreFrameReader reader_{kMaxGreetingBytes};
  std::deque<StoreFrame> queue_;
  std::size_t sent_ = 0;    // of the first in the queue
  std::size_t unsent_ = 0;  // bytes of the queue, with those that frames share
  StoreBacklog backlog_;    // the queue, as it is in memory
  Status dismissal_;
};

}  // namespace memspan::inline store
