// SPDX-License-Identifier: Apache-2.0
// Large payloads by rendezvous: the sender announces one, and the receiver fetches it in the
// network's best way, over several of its ports at once.
//
//   stream            ... data | large n | data ...      the place of the payload among the bytes
//   active message    number, and n bytes to fetch       one for each "large", numbered from 0
//
// Sends use the carrier's own buffers, so a call may end before the peer has fetched. Fetches also
// do, so a region may be retracted before the network is done. Several are in flight at a time.
#pragma once

#include <ucp/api/ucp.h>

#include <cstdint>
#include <functional>
#include <span>

#include "core/status.h"
#include "transport/message/ucx/buffer_pool.h"
#include "transport/message/ucx/channel.h"

namespace memspan::ucx {

// For one worker; the caller holds its mutex.
class Rendezvous {
 public:
  // The channel of an endpoint, or null.
  using Find = std::function<Channel*(ucp_ep_h)>;

  Status start(ucp_worker_h worker, Find find);

  // False when the endpoint has failed.
  bool send(ucp_ep_h endpoint, std::uint64_t number, std::span<const iovec> payload);
  // Whether a peer has not fetched a sent payload.
  bool is_sending() const { return sends_.in_use() > 0; }
  // Whether UCX uses its buffers.
  bool is_busy() const { return is_sending() || landings_.in_use() > 0; }

  // Starts to fetch a message's payload; Channel::landed() follows, or has already been called.
  void fetch(void* message, Landing& landing);
  // Releases an unwanted message.
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
