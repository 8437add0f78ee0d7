// SPDX-License-Identifier: Apache-2.0
#include "store/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

namespace memspan {

StoreAnswer all_parts(const std::vector<std::string_view>& parts, std::uint32_t size) {
  // Everybody gets everything, so what is sent grows with the square of the group.
  constexpr std::size_t kMostBytesOfAnswers = std::size_t{1} << 30;
  const std::size_t most = std::min(kMaxValueBytes, kMostBytesOfAnswers / size);
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size() + sizeof(std::uint32_t);
  if (bytes > most)
    return refuse(
        0, Code::kInvalidArgument,
        fmt::format("all members together brought {} bytes, at most {} are allowed", bytes, most));
  // All of them wait for the answer, so it is this one and not the end of whoever came last.
  try {
    return {.value = pack_texts(parts)};
  } catch (const std::bad_alloc&) {
    return refuse(0, Code::kOutOfMemory, "the store has no memory for what all members brought");
  }
}

}  // namespace memspan
