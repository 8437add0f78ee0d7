// SPDX-License-Identifier: Apache-2.0
// The carrier of the transport "message" of this process, and the address it listens at.
#pragma once

#include "net/endpoint.h"
#include "transport/message/socket/socket_carrier.h"
#include "transport/message/ucx/ucx_carrier.h"

namespace memspan::inline world {

// A carrier whose connections run under TLS 1.3, over the sockets of another carrier.
//
// Each process draws a key and publishes it in its address, "tls:KEY:ADDRESS", which members get
// from the store. A connection without the target's key ends before the target looks at a byte of
// it.
//
// The streams of `sockets` have sockets as descriptors. connect() returns kAuth if only one of the
// two processes encrypts. If this one does, listen() and connect() return kNotSupported if the
// build has no TLS.
std::unique_ptr<Carrier> make_encrypted_carrier(std::unique_ptr<Carrier> sockets, bool encrypts);

// Whether all processes of the job can reach abstract Unix sockets of each other: they can in one
// network namespace of one kernel.
enum class Reach { kOneKernel, kNetwork };

// A value.
struct CarrierOptions {
  enum class Kind { kSocket, kUcx } kind = Kind::kSocket;
  SocketOptions sockets = {};  // of kSocket
  bool encrypts = false;       // of kSocket
  // MessageOptions::silence_limit; not needed in one kernel, which shows deaths.
  Duration silence_limit = Duration::max();
  UcxOptions ucx = {};  // of kUcx
};

// MEMSPAN_CARRIER is "socket", "unix", "tcp", "tcp:ADDRESS" or "ucx". The default, "socket",
// selects Unix sockets if they reach all processes, else TCP. TCP and UCX listen at the address or
// interface that MEMSPAN_NET names, or in one kernel at the loopback. Otherwise they listen at the
// address from which this process reaches `store`, or at the first that is not loopback.
// MEMSPAN_ENCRYPT_DATA=1 puts sockets under TLS. MEMSPAN_SILENCE_LIMIT (default "2s"; "0s": no
// limit) is how long a TCP or UCX peer may give no sign of life. MEMSPAN_NATIVE_RMA=0 (for
// measurements) disables UCX's one-sided operations in builds that have them. kInvalidArgument: a
// variable is invalid. kUnavailable: no address. kAuth: UCX would use an untrusted network.
// kNotSupported: UCX or one-sided access is missing, or UCX is asked to encrypt.
Result<CarrierOptions> choose_carrier(Reach reach, const std::optional<Endpoint>& store);

// MEMSPAN_SILENCE_LIMIT, 2 s without it; Duration::max() for "0s".
Result<Duration> silence_limit();

// kNotSupported if UCX is missing.
Result<std::unique_ptr<Carrier>> make_carrier(const CarrierOptions& options);

}  // namespace memspan::inline world
