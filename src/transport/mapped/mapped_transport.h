// SPDX-License-Identifier: Apache-2.0
// Memory of the same host: each peer's segment is mapped into one address range, rank by rank, and
// reached by plain loads and stores.
#pragma once

#include <memory>

#include "device/reservation.h"
#include "transport/transport.h"

namespace memspan {

// Maps into `range`, which must outlive it.
std::unique_ptr<Transport> make_mapped_transport(Reservation& range);

}  // namespace memspan
