// SPDX-License-Identifier: Apache-2.0
#include "contract/transport/fixture.h"
#include "transport/mapped/mapped_transport.h"

namespace memspan::contract {

std::unique_ptr<Transport> make_transport(Reservation& range) {
  return make_mapped_transport(range);
}

}  // namespace memspan::contract
