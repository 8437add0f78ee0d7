// SPDX-License-Identifier: Apache-2.0
// A carrier whose connections run under TLS 1.3, over the sockets of another carrier.
//
// Each process draws a key and publishes it in its address, "tls:KEY:ADDRESS", which members get
// from the store. A connection without the target's key ends before the target looks at a byte of
// it. The connecting side cannot ask for less than the target requires.
#pragma once

#include <memory>

#include "transport/message/carrier.h"

namespace memspan {

enum class Encryption : bool { kWhereAsked, kAlways };

// The streams of `sockets` have sockets as descriptors. With kWhereAsked this process listens
// without TLS and encrypts only to peers whose address asks for it. With kAlways it listens under
// TLS, and connect() to a peer without TLS returns kAuth. listen() and connect() return
// kNotSupported if TLS is required but not available.
std::unique_ptr<Carrier> make_encrypted_carrier(std::unique_ptr<Carrier> sockets,
                                                Encryption encryption);

}  // namespace memspan
