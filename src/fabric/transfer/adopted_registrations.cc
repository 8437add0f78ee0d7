// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/adopted_registrations.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>
#include <vector>

namespace memspan::transfer {
namespace {

Status overlap(std::uint64_t base, std::uint64_t bytes, const Range& adopted) {
  return {Code::kInvalidArgument,
          fmt::format("{} bytes at {:#x} overlap the {} at {:#x} that are registered with adopted "
                      "pages: only the very same range may be registered again, by itself",
                      bytes, base, adopted.bytes, adopted.base)};
}

}  // namespace

AdoptedRegistrations::ByBase::iterator AdoptedRegistrations::find_any_overlap(std::uint64_t base,
                                                                              std::uint64_t bytes) {
  auto next = by_base_.lower_bound(base);
  if (next != by_base_.begin()) {
    const auto before = std::prev(next);
    if (base - before->first < before->second.range.bytes) return before;
  }
  return next != by_base_.end() && next->first - base < bytes ? next : by_base_.end();
}

Result<AdoptedRegistrations::ByBase::iterator> AdoptedRegistrations::find_overlap(
    std::uint64_t base, std::uint64_t bytes) {
  while (true) {
    const auto found = find_any_overlap(base, bytes);
    if (found == by_base_.end()) return found;
    MEMSPAN_PASS_ASSIGN(const auto is_in_place, found->second.memory.is_in_place());
    if (is_in_place) return found;
    // The program has other memory at this address now.
    MEMSPAN_TRY(erase(found), "forgetting memory that was freed while it was registered");
  }
}

Result<bool> AdoptedRegistrations::count(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS_ASSIGN(auto found, find_overlap(base, bytes));
  if (found == by_base_.end()) return false;
  Registration& registration = found->second;
  if (registration.range.base != base || registration.range.bytes != bytes)
    return overlap(base, bytes, registration.range);
  ++registration.count;
  return true;
}

Status AdoptedRegistrations::check_apart(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS_ASSIGN(auto found, find_overlap(base, bytes));
  return found == by_base_.end() ? Status::ok() : overlap(base, bytes, found->second.range);
}

Status AdoptedRegistrations::add(std::uint64_t base, std::uint64_t bytes) {
  MEMSPAN_PASS_ASSIGN(auto counted, count(base, bytes));
  if (counted) return Status::ok();
  Range range{.base = base, .bytes = bytes, .allocation = last_number_ + 1};
  MEMSPAN_PASS(table_.check(range));
  MEMSPAN_PASS_ASSIGN(auto memory, AdoptedMemory::adopt(reinterpret_cast<std::byte*>(base), bytes));
  std::vector<Fd> descriptors;
  MEMSPAN_TRY_ASSIGN(descriptors.emplace_back(), memory.duplicate(), "adopting memory");
  const std::string name = record_.allocation_name(range.allocation);
  MEMSPAN_PASS(member_.broker().publish(name, std::move(descriptors)));
  auto slot = table_.add(range);
  if (!slot.is_ok()) {
    member_.broker().retract(name);
    return slot.status();
  }
  ++last_number_;
  by_base_.emplace(base, Registration{std::move(memory), range, *slot});
  return Status::ok();
}

// Peers stop finding it in the table before the pages change.
Status AdoptedRegistrations::erase(ByBase::iterator which) {
  auto node = by_base_.extract(which);
  Registration& registration = node.mapped();
  table_.remove(registration.range, registration.slot);
  member_.broker().retract(record_.allocation_name(registration.range.allocation));
  return registration.memory.give_back();
}

Status AdoptedRegistrations::remove(std::uint64_t base) {
  const auto found = by_base_.find(base);
  if (found == by_base_.end())
    return {Code::kNotFound, fmt::format("no adopted memory is registered at {:#x}", base)};
  if (--found->second.count > 0) return Status::ok();
  return erase(found);
}

void AdoptedRegistrations::remove_all() {
  while (!by_base_.empty()) static_cast<void>(erase(by_base_.begin()));
}

void AdoptedRegistrations::leave_pages() {
  for (auto& [base, registration] : by_base_) registration.memory.leave();
}

}  // namespace memspan::transfer
