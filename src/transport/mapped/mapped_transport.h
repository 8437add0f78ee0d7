// SPDX-License-Identifier: Apache-2.0
// Memory of processes of the same node that lies in one shared file: each peer's region is mapped
// into one address range, where it was said to be, and reached by plain loads and stores.
#pragma once

#include <memory>

#include "device/pages.h"
#include "device/reservation.h"
#include "transport/transport.h"

namespace memspan {

// Regions are stretches of `pages`; Link::attach maps them into `range`. Both must outlive it.
std::unique_ptr<Transport> make_mapped_transport(Reservation& range, const Pages& pages);

// Describes the region that a peer exposes by mapped, without asking it: what is in `pages` is
// agreed among the processes of a node.
RemoteRegion describe_mapped(const LocalRegion& region);

}  // namespace memspan
