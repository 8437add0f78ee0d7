// SPDX-License-Identifier: Apache-2.0
#include "store/session.h"

#include <fmt/format.h>

#include <utility>

namespace memspan {
namespace {

// One answer of the largest size may wait while the next request is read, not more.
constexpr std::size_t kMaxQueuedBytes = kMaxValueBytes;

}  // namespace

StoreSession::StoreSession(Owner& owner, Id id, Socket socket)
    : owner_(owner), id_(id), socket_(std::move(socket)), patience_(socket_.get_executor()) {}

void StoreSession::start(Duration patience) {
  patience_.expires_after(patience);
  patience_.async_wait([self = shared_from_this()](const asio::error_code& error) {
    if (!error && self->stage_ != Stage::kServing) self->close();
  });
  read();
}

void StoreSession::send(const StoreAnswer& answer) {
  if (stage_ == Stage::kServing) queue(encode(answer));
}

void StoreSession::close() {
  if (stage_ == Stage::kClosed) return;
  stage_ = Stage::kClosed;
  asio::error_code ignored;
  socket_.close(ignored);
  patience_.cancel();
  owner_.closed(id_);
}

void StoreSession::read() {
  socket_.async_read_some(
      asio::buffer(chunk_),
      [self = shared_from_this()](const asio::error_code& error, std::size_t bytes) {
        if (error) return self->close();
        self->reader_.feed({self->chunk_.data(), bytes});
        self->take_frames();
      });
}

void StoreSession::take_frames() {
  is_paused_ = false;
  while (stage_ == Stage::kGreeting || stage_ == Stage::kServing) {
    if (queued_bytes_ > kMaxQueuedBytes) {
      is_paused_ = true;  // written() goes on here
      return;
    }
    auto frame = reader_.next();
    if (reader_.is_broken()) return close();
    if (!frame) return read();
    take_frame(*frame);
  }
}

void StoreSession::take_frame(std::string_view body) {
  if (stage_ == Stage::kGreeting) return greet(body);
  auto request = decode_request(body);
  if (!request.is_ok()) return close();
  owner_.serve(id_, std::move(request).value());
}

void StoreSession::greet(std::string_view body) {
  auto hello = decode_hello(body);
  if (!hello.is_ok()) return close();
  StoreWelcome welcome;
  if (hello->version == kStoreProtocolVersion) {
    stage_ = Stage::kServing;
    patience_.cancel();
    reader_.set_limit(kMaxFrameBytes);
  } else {
    stage_ = Stage::kRefusing;
    welcome.code = Code::kNotSupported;
    welcome.message = fmt::format("the store speaks version {} of the protocol, the client {}",
                                  kStoreProtocolVersion, hello->version);
  }
  queue(encode(welcome));
}

void StoreSession::queue(std::string frame) {
  queued_bytes_ += frame.size();
  queue_.push_back(std::move(frame));
  if (queue_.size() == 1) write();
}

void StoreSession::write() {
  asio::async_write(socket_, asio::buffer(queue_.front()),
                    [self = shared_from_this()](const asio::error_code& error, std::size_t bytes) {
                      if (error) return self->close();
                      self->written(bytes);
                    });
}

void StoreSession::written(std::size_t bytes) {
  if (stage_ == Stage::kClosed) return;
  queued_bytes_ -= bytes;
  queue_.pop_front();
  if (!queue_.empty()) write();
  if (stage_ == Stage::kRefusing && queue_.empty()) return close();
  if (is_paused_) take_frames();
}

}  // namespace memspan
