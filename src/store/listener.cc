// SPDX-License-Identifier: Apache-2.0
#include "store/listener.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <exception>
#include <utility>

#include "core/clock.h"

namespace memspan {
namespace {

// Pause of the listener when the process has no descriptor for a new connection.
constexpr Duration kAcceptPause = std::chrono::milliseconds(100);
constexpr int kAcceptBatch = 16;

}  // namespace

StoreListener::StoreListener(EventLoop& loop, Owner& owner)
    : loop_(loop), owner_(owner), reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

Status StoreListener::start(Fd socket) {
  socket_ = std::move(socket);
  MEMSPAN_TRY_ASSIGN(watch_,
                     loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); }),
                     "accepting connections");
  return Status::ok();
}

void StoreListener::stop() {
  loop_.cancel(watch_);
  loop_.cancel(pause_);
  if (socket_.is_valid()) ::shutdown(socket_.get(), SHUT_RDWR);  // as in StoreSession::close()
  socket_.reset();
}

// Only takes connections off the queue; the loop reads from them later.
void StoreListener::accept_some() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    Fd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_valid()) {
      try {
        owner_.accept(std::move(socket));
      } catch (const std::exception&) {
        owner_.out_of_memory();
      }
      continue;
    }
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    if (error == EMFILE || error == ENFILE) accept_and_close();
    if (error != EINTR && error != ECONNABORTED) return pause();
  }
}

void StoreListener::accept_and_close() {
  reserve_.reset();
  Fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  owner_.out_of_descriptors();
}

void StoreListener::pause() {
  loop_.change(watch_, 0);
  pause_ = loop_.call_at(Clock::now() + kAcceptPause, [this] { loop_.change(watch_, EPOLLIN); });
}

}  // namespace memspan
