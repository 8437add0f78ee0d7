// SPDX-License-Identifier: Apache-2.0
// What a backend gives to run the link contract: a transport. Everything else is the same for all.
#pragma once

#include <memory>

#include "device/reservation.h"
#include "transport/transport.h"

namespace memspan::contract {

// Defined once per backend. `range` outlives the transport.
std::unique_ptr<Transport> make_transport(Reservation& range);

}  // namespace memspan::contract
