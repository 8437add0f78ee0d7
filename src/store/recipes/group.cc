// SPDX-License-Identifier: Apache-2.0
#include "store/recipes/group.h"

#include <fmt/format.h>

#include "core/check.h"
#include "store/collective_service.h"
#include "store/recipes/group_by_verbs.h"

namespace memspan {

StoreGroup::StoreGroup(KeyValueStore& store, std::string name, int rank, int size)
    : store_(store), name_(std::move(name)), rank_(rank), size_(size) {
  MEMSPAN_CHECK(size > 0 && rank >= 0 && rank < size);
  if (store_.collectives() == nullptr)
    by_verbs_ = std::make_unique<ByVerbs>(store_, name_, rank_, size_);
}

StoreGroup::~StoreGroup() = default;

Status StoreGroup::barrier(Deadline deadline) {
  return allgather({}, deadline).status();
}

Result<std::vector<std::string>> StoreGroup::allgather(std::string_view mine, Deadline deadline) {
  const std::uint64_t operation = operation_++;
  auto parts = by_verbs_ != nullptr ? by_verbs_->allgather(operation, mine, deadline)
                                    : store_.collectives()->group_allgather(name_, operation, rank_,
                                                                            size_, mine, deadline);
  if (parts.is_ok()) return parts;
  return parts.status().annotate(fmt::format("operation {} of the group", operation));
}

Status StoreGroup::leave(Deadline deadline) {
  if (by_verbs_ != nullptr) return by_verbs_->leave(deadline);
  return store_.collectives()->leave_group(name_, deadline);
}

}  // namespace memspan
