// SPDX-License-Identifier: Apache-2.0
#include "contract/transport/fixture.h"
#include "transport/fake/fake_transport.h"
#include "transport/mapped/mapped_transport.h"

namespace memspan::contract {

std::unique_ptr<Transport> make_transport(Reservation& range) {
  static const FakeFaults kHold{.hold_puts = true, .before = {}};
  return make_fake_transport(make_mapped_transport(range), kHold);
}

}  // namespace memspan::contract
