// SPDX-License-Identifier: Apache-2.0
#include "fabric/address_registry.h"

#include <optional>

#include "memory/address_plan.h"
#include "store/recipes/ranges.h"

namespace memspan {
namespace {

constexpr auto kEndPatience = std::chrono::seconds(5);

RangeRegistry registry_of(Member& member) {
  constexpr RangeBounds kWindow{
      .begin = kPoolWindow, .end = kPoolWindow + kPoolWindowBytes, .step = std::uint64_t{1} << 30};
  return {member.store(), "fabric/addresses", kWindow};
}

}  // namespace

Result<AddressRange> AddressRange::claim(std::shared_ptr<Member> member, const std::string& name,
                                         std::uint64_t bytes, const std::string& layout,
                                         Deadline deadline) {
  std::optional<Reservation> reservation;
  const auto take = [&](std::uint64_t base) {
    reservation.reset();
    auto made = Reservation::make_at(bytes, reinterpret_cast<void*>(base));
    if (made.is_ok()) reservation.emplace(std::move(made).value());
    return made.status();
  };
  MutexLock lock(member->claiming());
  MEMSPAN_TRY(registry_of(*member).claim(name, bytes, layout, take, deadline).status(),
              "reserving the addresses of the pool");
  return AddressRange(std::move(member), name, std::move(*reservation));
}

// Best effort: without it the user's key goes with the lease.
AddressRange::~AddressRange() {
  if (member_ != nullptr)
    static_cast<void>(registry_of(*member_).release(name_, Deadline::after(kEndPatience)));
}

}  // namespace memspan
