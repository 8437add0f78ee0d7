// SPDX-License-Identifier: Apache-2.0
// Accepts new connections from a listening socket, on the server's event loop.
//
// It accepts at most kAcceptBatch at a time, so that existing connections get their turn. If no
// descriptor is left, it accepts and closes a connection, so that the peer does not wait.
#pragma once

#include "core/fd.h"
#include "net/event_loop.h"

namespace memspan {

// Only for the loop's thread, but start(). Must be stopped before it is destroyed.
class StoreListener {
 public:
  // Receives the connections; must outlive the listener.
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

  StoreListener(EventLoop& loop, Owner& owner);

  Status start(Fd socket);
  // Allowed before start(). Accepts nothing afterwards.
  void stop();

 private:
  void accept_some();
  void accept_and_close();
  void pause();

  EventLoop& loop_;
  Owner& owner_;
  Fd socket_;
  EventLoop::Token watch_ = 0;
  EventLoop::Token pause_ = 0;
  Fd reserve_;  // released briefly to refuse a connection when no descriptor is left
};

}  // namespace memspan
