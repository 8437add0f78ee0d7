// SPDX-License-Identifier: Apache-2.0
// Large payloads by rendezvous: the sender tells that it has one, and the receiver fetches it with
// whatever the network does best, over several of its ports at once.
//
//   stream            ... data | large n | data ...      the place of the payload among the bytes
//   active message    number, and n bytes to fetch       one for each "large", numbered from 0
//
// Sent from buffers of the carrier's own, so that a call may end before the peer has fetched, and
// fetched into such buffers, so that a region may go before the network is done. Several are on
// their way at a time.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <functional>
#include <span>

#include "core/status.h"
#include "transport/message/ucx/buffer_pool.h"
#include "transport/message/ucx/channel.h"

namespace memspan::ucx {

// Of one worker, with its mutex held.
class Rendezvous {
 public:
  // The channel of an endpoint, or null.
  using Find = std::function<Channel*(ucp_ep_h)>;

  Status start(ucp_worker_h worker, Find find);

  // False when the endpoint has failed.
  bool send(ucp_ep_h endpoint, std::uint64_t number, std::span<const iovec> payload);
  // Whether something was sent that a peer has not fetched.
  bool is_sending() const { return sends_.in_use() > 0; }
  // Whether UCX has buffers of it.
  bool is_busy() const { return is_sending() || landings_.in_use() > 0; }

  // Begins to fetch what a message offers; Channel::landed() follows, or has been called already.
  void fetch(void* message, Landing& landing);
  // Of a message that nobody wants.
  void drop(void* message);

 private:
  static ucs_status_t on_message(void* self, const void* header, std::size_t header_bytes,
                                 void* message, std::size_t bytes, const ucp_am_recv_param_t* how);
  static void on_sent(void* request, ucs_status_t status, void* buffer);
  static void on_fetched(void* request, ucs_status_t status, std::size_t bytes, void* landing);

  ucp_worker_h worker_ = nullptr;
  Find find_;
  BufferPool sends_;
  BufferPool landings_;
};

}  // namespace memspan::ucx
