// SPDX-License-Identifier: Apache-2.0
#include "store/rank_service.h"

#include "core/bytes.h"
#include "core/remedy.h"

namespace memspan {

MEMSPAN_REMEDY(kRankTaken, "rank-taken",
               "Another process has this rank, perhaps of an earlier job at the same address.",
               "Give each process its own rank; end the earlier job, or set another MEMSPAN_JOB.");

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

}  // namespace memspan
