// SPDX-License-Identifier: Apache-2.0
// What moves the bytes of the transport "message" of this process, and where it listens.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/status.h"
#include "store/endpoint.h"
#include "transport/message/socket/socket_carrier.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan {

// Whether all processes of the job can reach abstract Unix sockets of each other: they can in one
// network namespace of one kernel.
enum class Reach { kOneKernel, kNetwork };

// A value.
struct CarrierOptions {
  enum class Kind { kSocket, kUcx } kind = Kind::kSocket;
  SocketOptions sockets = {};  // of kSocket
  bool encrypts = false;       // the same
  // MessageOptions::silence_limit: processes of one kernel are seen to die.
  Duration silence_limit = Duration::max();
  UcxOptions ucx = {};  // of kUcx
};

// What MEMSPAN_CARRIER says ("socket", "unix", "tcp", "tcp:ADDRESS", "ucx"); without it, or with
// "socket": Unix sockets where they reach, else TCP. TCP and UCX listen at the address or interface
// that MEMSPAN_NET names, else at the address with which this process would go to `store`, or at
// the first one that is not loopback; in one kernel at the loopback. With MEMSPAN_ENCRYPT_DATA=1
// sockets are under TLS. MEMSPAN_SILENCE_LIMIT ("2s" without it, "0s" for never) is how long a peer
// that is reached by TCP or UCX may give no sign of life. MEMSPAN_SEND_BUFFER:
// SocketOptions::send_buffer. MEMSPAN_NATIVE_RMA=0: UCX's one-sided operations are not used.
// MEMSPAN_UCX_RENDEZVOUS: UcxOptions::rendezvous, 0 never and 1 always. kInvalidArgument when a
// variable says something else, kUnavailable when there is no address, kAuth when UCX would use a
// network that is not trusted, kNotSupported when there is no UCX, or when it is to encrypt.
Result<CarrierOptions> choose_carrier(Reach reach, const std::optional<Endpoint>& store);

// kNotSupported when there is no UCX.
Result<std::unique_ptr<Carrier>> make_carrier(const CarrierOptions& options);

}  // namespace memspan
