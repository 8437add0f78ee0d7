// SPDX-License-Identifier: Apache-2.0
#include "store/collective_service.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/bytes.h"
#include "core/remedy.h"
#include "store/key_value_store.h"

namespace memspan {

MEMSPAN_REMEDY(kRankTaken, "rank-taken",
               "Another process has this rank, perhaps of an earlier job at the same address.",
               "Give each process its own rank; end the earlier job, or set another MEMSPAN_JOB.");
MEMSPAN_REMEDY(
    kRanksMissing, "ranks-missing",
    "The named ranks did not come before the time limit of the start or the call.",
    "Read their output: they failed or never started. MEMSPAN_INIT_TIMEOUT is the limit.");

std::string StoreRank::encode() const {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(rank));
  writer.u32(size);
  writer.u64(generation);
  return writer.take();
}

Result<StoreRank> StoreRank::decode(std::string_view bytes) {
  ByteReader reader(bytes);
  StoreRank taken;
  taken.rank = static_cast<int>(reader.u32());
  taken.size = reader.u32();
  taken.generation = reader.u64();
  if (!reader.is_finished()) return Status(Code::kInvalidArgument, "a malformed rank");
  return taken;
}

Status check_place(std::int64_t rank, std::int64_t size) {
  if (size < 1 || size > kMostMembers)
    return {Code::kInvalidArgument,
            fmt::format("a group has 1 to {} members, not {}", kMostMembers, size)};
  if (rank < 0 || rank >= size)
    return {Code::kInvalidArgument,
            fmt::format("the rank is {}, allowed are 0 to {}", rank, size - 1)};
  return Status::ok();
}

Status check_contributions(std::size_t bytes, std::uint32_t size) {
  // Each member receives all contributions, so the bytes sent grow with the square of the group.
  constexpr std::size_t kMostBytesOfAnswers = std::size_t{1} << 30;
  const std::size_t most = std::min(kMaxValueBytes, kMostBytesOfAnswers / size);
  if (bytes <= most) return Status::ok();
  return {
      Code::kInvalidArgument,
      fmt::format("all members together brought {} bytes, at most {} are allowed", bytes, most)};
}

}  // namespace memspan
