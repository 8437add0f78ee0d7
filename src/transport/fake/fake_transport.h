// SPDX-License-Identifier: Apache-2.0
// A transport for tests: over another one, but never direct, and with faults to order. Puts and
// non-fetching atomics can be held back until fence or quiet, which finds code that forgets them.
//
// Always built, so that production code needs no test hooks; chosen by MEMSPAN_TRANSPORT=fake.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "transport/transport.h"

namespace memspan {

// Shared by the transport and whoever makes it; change it only while no operation runs.
struct FakeFaults {
  bool hold_puts = false;  // deliver at fence, quiet, get or a fetching atomic only
  // Called before each operation with its name ("put", "get", "atomic", "fence", "quiet",
  // "connect"); a failure is returned instead of doing it. May be empty.
  std::function<Status(std::string_view operation)> before;
};

// `faults` must outlive the transport and its links.
std::unique_ptr<Transport> make_fake_transport(std::unique_ptr<Transport> inner,
                                               const FakeFaults& faults);

}  // namespace memspan
