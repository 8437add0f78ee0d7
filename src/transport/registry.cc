// SPDX-License-Identifier: Apache-2.0
#include "transport/registry.h"

#include <fmt/format.h>

#include "core/environment.h"
#include "transport/fake/fake_transport.h"
#include "transport/mapped/mapped_transport.h"

namespace memspan {

Result<std::unique_ptr<Transport>> TransportRegistry::choose(const std::string& wanted) const {
  std::string names;
  std::string reasons;
  for (const Entry& entry : entries_) {
    names += (names.empty() ? "" : ", ") + entry.name;
    if (!wanted.empty() && wanted != entry.name) continue;
    std::unique_ptr<Transport> transport = entry.make();
    Status viable = transport->viable();
    if (viable.is_ok()) return transport;
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", entry.name, viable.message());
  }
  if (!reasons.empty()) return Status(Code::kUnavailable, "no transport works here: " + reasons);
  return Status(Code::kNotFound,
                fmt::format("there is no transport \"{}\"; allowed are {}", wanted, names));
}

void add_builtin_transports(TransportRegistry& registry, Reservation& range) {
  registry.add("mapped", [&range] { return make_mapped_transport(range); });
  registry.add("fake", [&range] {
    // A job over the fake transport delivers puts late on request and never fails of itself.
    static const FakeFaults kHold{.hold_puts = environment_or("MEMSPAN_FAKE_HOLD_PUTS", "") == "1",
                                  .before = {}};
    return make_fake_transport(make_mapped_transport(range), kHold);
  });
}

}  // namespace memspan
