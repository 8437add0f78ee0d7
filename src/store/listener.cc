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

StoreListener::StoreListener(asio::io_context& context, Owner& owner)
    : owner_(owner),
      socket_(context),
      pause_(context),
      reserve_(::open("/dev/null", O_RDONLY | O_CLOEXEC)) {}

void StoreListener::start(Fd socket) {
  socket_.assign(socket.get());
  static_cast<void>(socket.release());
  asio::post(socket_.get_executor(), [this] { await(); });
}

void StoreListener::stop() {
  is_stopping_ = true;
  asio::error_code ignored;
  if (socket_.is_open())
    ::shutdown(socket_.native_handle(), SHUT_RDWR);  // as in StoreSession::close()
  socket_.close(ignored);
  pause_.cancel();
}

void StoreListener::await() {
  if (is_stopping_) return;
  socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                     [this](const asio::error_code& error) {
                       if (!error && !is_stopping_) accept_some();
                     });
}

// Only takes connections off the queue; the loop reads from them later.
void StoreListener::accept_some() {
  for (int i = 0; i < kAcceptBatch; ++i) {
    Fd socket(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.is_valid()) {
      try {
        owner_.accept(std::move(socket));
      } catch (const std::exception&) {
        owner_.out_of_memory();
      }
      continue;
    }
    const int error = errno;
    if (error == EAGAIN || error == EWOULDBLOCK) break;
    if (error == EMFILE || error == ENFILE) accept_and_close();
    if (error != EINTR && error != ECONNABORTED) return pause();
  }
  await();
}

void StoreListener::accept_and_close() {
  reserve_.reset();
  Fd(::accept4(socket_.native_handle(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  reserve_.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  owner_.out_of_descriptors();
}

void StoreListener::pause() {
  pause_.expires_after(kAcceptPause);
  pause_.async_wait([this](const asio::error_code& error) {
    if (!error) await();
  });
}

}  // namespace memspan
