// SPDX-License-Identifier: Apache-2.0
#include "store/key_value_store.h"

#include <fmt/format.h>

namespace memspan::inline store {

Status check_store_key(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxKeyBytes) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("a key has 1 to {} bytes, not {}", kMaxKeyBytes, key.size())};
}

Status check_store_value(std::string_view value) {
  if (value.size() <= kMaxValueBytes) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("a value has at most {} bytes, not {}", kMaxValueBytes, value.size())};
}

Status check_store_listing(std::size_t bytes) {
  if (bytes <= kMaxValueBytes) return Status::ok();
  return {Code::kInvalidArgument,
          fmt::format("the keys and values have more than {} bytes; a longer prefix names fewer",
                      kMaxValueBytes)};
}

}  // namespace memspan::inline store
