// SPDX-License-Identifier: Apache-2.0
// A unique id is, as text, the place of a store that already listens in the process that made it
// and the secret that opens it, or "-" when the program chose what protects its stores:
// "10.0.0.1:40123 0123456789abcdef0123456789abcdef". Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "capi/aclshmem/attributes.h"
#include "core/status.h"

namespace memspan::capi {

bool is_unique_id_text(std::string_view text);

// Opens the store (world/membership.h says where) and keeps it for take_unique_id().
// kNotSupported when the text is longer than `most` bytes.
Result<std::string> open_unique_id(std::size_t most);

// The store's URL and secret; in the process that made the id, once also the store itself.
StorePlace take_unique_id(std::string_view text);

}  // namespace memspan::capi
