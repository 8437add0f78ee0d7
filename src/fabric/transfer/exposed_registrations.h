// SPDX-License-Identifier: Apache-2.0
// The registered memory that members on other hosts have asked for, each extent a region.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "core/status.h"
#include "fabric/remote_access.h"
#include "fabric/transfer/registration_view.h"

namespace memspan::transfer {

// The owner's side. The table outlives it. One thread at a time.
class ExposedRegistrations {
 public:
  explicit ExposedRegistrations(const RegistrationPages& table) : view_(table) {}

  struct Extent {
    std::uint64_t base = 0;
    const ExposedRegion* region = nullptr;  // until it is retracted
  };
  // The extent of the piece. The message of kNotFound names the registrations near it.
  Result<Extent> find(RemoteAccess& access, std::uint64_t address, std::uint64_t bytes);
  // Call it after the registration at `base` was removed from the table. Retracts what is not
  // registered any more.
  void retract_removed(std::uint64_t base);
  void retract_all() {
    single_.clear();
    joined_.clear();
  }

 private:
  struct Exposed {
    std::uint64_t bytes = 0;
    std::unique_ptr<ExposedRegion> region;
  };
  using Extents = std::multimap<std::uint64_t, Exposed>;  // by base
  void retract_removed(Extents& extents, Extents::iterator first, Extents::iterator last);

  RegistrationView view_;
  Extents single_;  // of one range each
  Extents joined_;
};

}  // namespace memspan::transfer
