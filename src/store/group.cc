// SPDX-License-Identifier: Apache-2.0
#include "store/group.h"

#include <fmt/format.h>

#include "core/check.h"

namespace memspan {

Group::Group(StoreClient& client, std::string name, int rank, int size)
    : client_(client), name_(std::move(name)), rank_(rank), size_(size) {
  MEMSPAN_CHECK(size > 0 && rank >= 0 && rank < size);
}

Status Group::barrier(Deadline deadline) {
  return allgather({}, deadline).status();
}

Result<std::vector<std::string>> Group::allgather(std::string_view mine, Deadline deadline) {
  const std::uint64_t operation = operation_++;
  auto parts = client_.meet(name_, operation, rank_, size_, mine, deadline);
  if (parts.is_ok()) return parts;
  return parts.status().annotate(fmt::format("operation {} of the group", operation));
}

Status Group::leave(Deadline deadline) {
  return client_.leave(name_, deadline);
}

}  // namespace memspan
