// SPDX-License-Identifier: Apache-2.0
#include "fabric/transfer/registered_allocation.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include "core/pages.h"
#include "memory/budget.h"

namespace memspan::transfer {

Result<RegisteredAllocation> RegisteredAllocation::allocate(std::size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "invalid capacity, which is 0");
  if (bytes > SIZE_MAX - page_size())
    return Status(Code::kOutOfMemory, fmt::format("{} bytes are more than any machine has", bytes));
  MEMSPAN_TRY_ASSIGN(Pages pages, Pages::create(bytes, "memspan-trans"), "making memory");
  MEMSPAN_TRY_ASSIGN(Reservation place, Reservation::make(pages.bytes(), nullptr),
                     "mapping memory");
  MEMSPAN_TRY(place.map(0, pages, 0, pages.bytes()), "mapping memory");
  MEMSPAN_PASS(
      commit_within_budget({pages, 0, place.base(), pages.bytes()}, "memory of an endpoint"));
  MEMSPAN_TRY_ASSIGN(Fd descriptor, pages.duplicate(), "making memory");
  return RegisteredAllocation(std::move(descriptor), std::move(place));
}

RegisteredAllocation::~RegisteredAllocation() {
  // A peer that has it mapped would keep it otherwise.
  if (place_.base() != nullptr) madvise(place_.base(), place_.bytes(), MADV_REMOVE);
}

}  // namespace memspan::transfer
