// SPDX-License-Identifier: Apache-2.0
#include "store/answers.h"

#include <new>

namespace memspan {

StoreAnswer all_parts(const std::vector<std::string_view>& parts, std::uint32_t size) {
  std::size_t bytes = 0;
  for (const std::string_view part : parts) bytes += part.size() + sizeof(std::uint32_t);
  if (Status status = check_contributions(bytes, size); !status.is_ok())
    return refuse(0, status.code(), status.message());
  // All members wait for the answer, so all get this error, not only the last contributor.
  try {
    return {.value = pack_texts(parts)};
  } catch (const std::bad_alloc&) {
    return refuse(0, Code::kOutOfMemory, "the store has no memory for what all members brought");
  }
}

}  // namespace memspan
