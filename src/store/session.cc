// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

#include <fmt/format.h>

#include <utility>

namespace memspan {
namespace {

// One answer of the largest size may wait while the next request is read, not more.
constexpr std::size_t kMaxQueuedBytes = kMaxValueBytes;
// Chunks taken from one connection before the others get their turn.
constexpr int kChunksInARow = 8;

// Fatal, protocol_version: as TLS 1.0 to 1.3 read it.
constexpr std::string_view kProtocolVersionAlert("\x15\x03\x01\x00\x02\x02\x46", 7);

bool is_tls_record(std::string_view bytes) {
  return bytes.starts_with("\x16\x03");
}

Status lost(std::string why) {
  return {Code::kStoreLost, std::move(why)};
}

}  // namespace

StoreSession::StoreSession(Owner& owner, SessionId id, std::unique_ptr<StoreStream> stream,
                           asio::io_context& context, std::span<char> chunk, StorePatience patience)
    : owner_(owner),
      id_(id),
      stream_(std::move(stream)),
      watched_(context, stream_->socket()),
      chunk_(chunk),
      limits_(patience),
      patience_(context) {}

void StoreSession::start() {
  patience_.expires_after(limits_.hello);
  patience_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && self->stage_ != Stage::kServing)
      self->close(lost("it did not say hello in time"));
  });
  shake_hands();
}

void StoreSession::send(const StoreAnswer& answer) {
  if (stage_ == Stage::kServing) queue(encode(answer));
}

void StoreSession::close(const Status& why) {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kClosed;
  watched_.release();  // cancels what waits
  stream_.reset();
  patience_.cancel();
  owner_.closed(id_, why);
}

// True when the step was done. Otherwise the session waits, or is closed.
bool StoreSession::goes_on(const StreamStep& step) {
  switch (step.next) {
    case StreamStep::Next::kDone:
      return true;
    case StreamStep::Next::kReadable:
      await_bytes();
      return false;
    case StreamStep::Next::kWritable:
      await_room();
      return false;
    case StreamStep::Next::kEnd:
      close(lost("its connection to the store ended"));
      return false;
    case StreamStep::Next::kFailed:
      close(step.failure);
      return false;
  }
  return false;
}

void StoreSession::shake_hands() {
  if (!goes_on(stream_->handshake())) return;
  stage_ = Stage::kGreeting;
  read();
}

void StoreSession::await_bytes() {
  if (std::exchange(is_reading_, true)) return;
  watched_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [self = shared_from_this()](const asio::error_code& error) {
                        self->is_reading_ = false;
                        if (error || self->stage_ == Stage::kClosed) return;
                        self->owner_.spoke(self->id_);
                        if (self->stage_ == Stage::kHandshake)
                          self->shake_hands();
                        else
                          self->read();
                      });
}

void StoreSession::await_room() {
  if (std::exchange(is_writing_, true)) return;
  watched_.async_wait(asio::posix::stream_descriptor::wait_write,
                      [self = shared_from_this()](const asio::error_code& error) {
                        self->is_writing_ = false;
                        if (error || self->stage_ == Stage::kClosed) return;
                        if (self->stage_ == Stage::kHandshake)
                          self->shake_hands();
                        else
                          self->write();
                      });
}

void StoreSession::read() {
  for (int i = 0; i < kChunksInARow; ++i) {
    take_frames();
    if (is_paused_ || (stage_ != Stage::kGreeting && stage_ != Stage::kServing)) return;
    const StreamStep step = stream_->read(chunk_.data(), chunk_.size());
    if (!goes_on(step)) return;
    const std::string_view bytes(chunk_.data(), step.bytes);
    if (!std::exchange(has_read_, true) && is_tls_record(bytes)) return refuse_tls();
    reader_.feed(bytes);
    owner_.spoke(id_);
  }
  read_soon();
}

// Somebody wants TLS where there is none (under TLS a record is never seen here): an alert in his
// own language tells him at once, or he would take us for a store that is about to come.
void StoreSession::refuse_tls() {
  static_cast<void>(stream_->write(kProtocolVersionAlert));
  close({Code::kAuth, "the other side speaks TLS, and this store was told to do without"});
}

void StoreSession::read_soon() {
  asio::post(watched_.get_executor(), [self = shared_from_this()] {
    if (self->stage_ == Stage::kGreeting || self->stage_ == Stage::kServing) self->read();
  });
}

// Pauses when too many answers wait to be read by the peer; write() goes on here then.
void StoreSession::take_frames() {
  while (stage_ == Stage::kGreeting || stage_ == Stage::kServing) {
    is_paused_ = queued_bytes_ > kMaxQueuedBytes;
    if (is_paused_) return;
    auto frame = reader_.next();
    if (reader_.is_broken())
      return close({Code::kInvalidArgument, "it sent a frame that is empty or too long"});
    if (!frame) return watch_the_clock();
    take_frame(*frame);
  }
}

void StoreSession::take_frame(std::string_view body) {
  if (stage_ == Stage::kGreeting) return greet(body);
  auto request = decode_request(body);
  if (!request.is_ok()) return close(request.status());
  owner_.serve(id_, std::move(request).value());
}

void StoreSession::greet(std::string_view body) {
  auto hello = decode_hello(body);
  if (!hello.is_ok()) return close(hello.status());
  StoreWelcome welcome;
  if (hello->version == kStoreProtocolVersion) {
    welcome = owner_.greet(id_, *hello, *stream_);
  } else {
    welcome.code = Code::kNotSupported;
    welcome.message = fmt::format("the store speaks version {} of the protocol, the client {}",
                                  kStoreProtocolVersion, hello->version);
  }
  const bool is_welcome = welcome.code == Code::kOk;
  stage_ = is_welcome ? Stage::kServing : Stage::kRefusing;
  if (is_welcome) {
    patience_.cancel();
    reader_.set_limit(kMaxFrameBytes);
  }
  queue(encode(welcome));
}

void StoreSession::queue(std::string frame) {
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  if (queue_.size() == 1) write();
}

void StoreSession::write() {
  while (!queue_.empty()) {
    const std::string& frame = queue_.front();
    const StreamStep step = stream_->write(std::string_view(frame).substr(sent_));
    if (!goes_on(step)) {
      if (stage_ != Stage::kClosed) watch_the_clock();
      return;
    }
    sent_ += step.bytes;
    if (sent_ < frame.size()) continue;
    queued_bytes_ -= frame.size();
    sent_ = 0;
    queue_.pop_front();
    is_timing_frames_ = false;  // the next frame has its own time
    if (is_paused_ && queued_bytes_ <= kMaxQueuedBytes) {
      is_paused_ = false;
      read_soon();
    }
  }
  if (stage_ == Stage::kRefusing) return close(lost("it was refused"));
  watch_the_clock();
}

// A frame that has begun, in either direction, has to end in time.
void StoreSession::watch_the_clock() {
  if (stage_ != Stage::kServing) return;
  const bool has_begun = reader_.has_part() || !queue_.empty();
  if (!has_begun) {
    if (std::exchange(is_timing_frames_, false)) patience_.cancel();
    return;
  }
  if (std::exchange(is_timing_frames_, true)) return;
  patience_.expires_after(limits_.frame);
  patience_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && self->is_timing_frames_)
      self->close(lost(fmt::format("it took longer than {:.0f} s over one frame",
                                   to_seconds(self->limits_.frame))));
  });
}

}  // namespace memspan
