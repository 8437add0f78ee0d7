// SPDX-License-Identifier: Apache-2.0
#include "store/answers.h"

#include <fmt/format.h>

#include <algorithm>

namespace memspan {

StoreAnswer all_parts(const std::vector<std::string>& parts, std::uint32_t size) {
  // Everybody gets everything, so what is sent grows with the square of the group.
  constexpr std::size_t kMostBytesOfAnswers = std::size_t{1} << 30;
  const std::size_t most = std::min(kMaxValueBytes, kMostBytesOfAnswers / size);
  std::size_t bytes = 0;
  for (const std::string& part : parts) bytes += part.size() + sizeof(std::uint32_t);
  if (bytes <= most) return {.value = pack_texts(parts)};
  return refuse(
      0, Code::kInvalidArgument,
      fmt::format("all members together brought {} bytes, at most {} are allowed", bytes, most));
}

}  // namespace memspan
