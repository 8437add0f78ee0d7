// SPDX-License-Identifier: Apache-2.0
// Takes new connections off a listening socket, on the server's event loop.
//
// At most kAcceptBatch in one go, so that the connections that exist get their turn. Without a
// descriptor left a connection is taken and closed, or its owner would wait.
#pragma once

#include "core/fd.h"
#include "store/asio.h"

namespace memspan {

// Only for the thread that runs the io_context.
class StoreListener {
 public:
  // Who gets the connections; must outlive the listener.
  class Owner {
   public:
    // May throw for lack of memory.
    virtual void accept(Fd socket) = 0;
    // A connection was lost for lack of memory or of descriptors.
    virtual void out_of_memory() = 0;
    virtual void out_of_descriptors() = 0;

   protected:
    ~Owner() = default;
  };

  StoreListener(asio::io_context& context, Owner& owner);

  void start(Fd socket);
  // Also when it was not started. Nothing is accepted afterwards.
  void stop();

 private:
  void await();
  void accept_some();
  void accept_and_close();
  void pause();

  Owner& owner_;
  asio::posix::stream_descriptor socket_;
  asio::steady_timer pause_;
  Fd reserve_;  // given up for a moment to be able to refuse when there are no descriptors left
  bool is_stopping_ = false;
};

}  // namespace memspan
