// SPDX-License-Identifier: Apache-2.0
// A carrier whose connections run under TLS 1.3, over the sockets of another carrier.
//
// Each process draws a key and publishes it in its address, "tls:KEY:ADDRESS", which members get
// from the store. A connection without the target's key ends before the target looks at a byte of
// it.
#pragma once

#include <memory>

#include "transport/message/carrier.h"

namespace memspan {

enum class Encryption : bool { kNever, kAlways };

// The streams of `sockets` have sockets as descriptors. connect() returns kAuth if only one of the
// two processes encrypts. With kAlways, listen() and connect() return kNotSupported if the build
// has no TLS.
std::unique_ptr<Carrier> make_encrypted_carrier(std::unique_ptr<Carrier> sockets,
                                                Encryption encryption);

}  // namespace memspan
