// SPDX-License-Identifier: Apache-2.0
// A carrier whose connections run under TLS 1.3, over the sockets of another carrier.
//
// Each process draws a key and tells it in its address, "tls:KEY:ADDRESS", which members learn from
// the store. A connection that does not know the key of whom it goes to ends before a byte of it is
// looked at. What the connecting side asks for cannot be less than what the other side wants.
#pragma once

#include <memory>

#include "transport/message/carrier.h"

namespace memspan {

enum class Encryption : bool { kWhereAsked, kAlways };

// The streams of `sockets` have sockets as descriptors. With kWhereAsked this process listens
// plainly, and encrypts to those whose address says so; with kAlways it listens under TLS, and
// goes to nobody who does not: connect() then gives kAuth. listen() and connect() give
// kNotSupported where TLS is wanted and is not there.
std::unique_ptr<Carrier> make_encrypted_carrier(std::unique_ptr<Carrier> sockets,
                                                Encryption encryption);

}  // namespace memspan
