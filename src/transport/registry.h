// SPDX-License-Identifier: Apache-2.0
// The transports there are, best first, and which one serves: the first that is viable, or the one
// that MEMSPAN_TRANSPORT names. Nothing registers itself; the caller fills the registry.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "device/reservation.h"
#include "transport/transport.h"

namespace memspan {

// One thread at a time.
class TransportRegistry {
 public:
  using Make = std::function<std::unique_ptr<Transport>()>;
  void add(std::string name, Make make) { entries_.push_back({std::move(name), std::move(make)}); }

  // `wanted` empty: the first viable one. kNotFound names what there is, kUnavailable why none
  // works.
  Result<std::unique_ptr<Transport>> choose(const std::string& wanted) const;

 private:
  struct Entry {
    std::string name;
    Make make;
  };
  std::vector<Entry> entries_;
};

// mapped, then fake (which is never chosen unasked: mapped is always viable). `range` must outlive
// the registry's transports.
void add_builtin_transports(TransportRegistry& registry, Reservation& range);

}  // namespace memspan
