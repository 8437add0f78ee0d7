// SPDX-License-Identifier: Apache-2.0
// Reaches memory of processes of one node in a shared file. Each peer's region is mapped into one
// address range, at the offset in its key, for plain loads and stores.
#pragma once

#include <memory>

#include "device/pages.h"
#include "device/reservation.h"
#include "transport/transport.h"

namespace memspan {

// Regions are ranges of `pages`; Link::attach maps them into `range`. Both must outlive it.
std::unique_ptr<Transport> make_mapped_transport(Reservation& range, const Pages& pages);

// Describes the region that a peer exposes by mapped, without asking it: the processes of a node
// agree on the layout of `pages`.
RemoteRegion describe_mapped(const LocalRegion& region);

}  // namespace memspan
