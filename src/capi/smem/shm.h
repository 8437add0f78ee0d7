// SPDX-License-Identifier: Apache-2.0
// What the Share Memory calls of this process share.
#pragma once

#include <smem/host/smem_shm.h>

#include <cstdint>
#include <memory>

#include "capi/handle_table.h"
#include "capi/smem/result.h"
#include "core/clock.h"
#include "fabric/space.h"

namespace memspan::capi {

// Spaces have the ids 0 to this.
inline constexpr std::uint32_t kMostSpaceId = 63;

// The object behind a handle.
struct SharedSpace {
  std::uint32_t id = 0;
  Duration limit = {};  // of operations that wait for others
  std::unique_ptr<Space> space;
};

using SharedSpaces = HandleTable<SharedSpace, HandleKind::kSpace, kMostSpaceId + 1>;
SharedSpaces& shared_spaces();

// Why a handle names nothing, kept as the call's failure.
std::int32_t no_such_space(const char* call, const void* handle);

// Calls `function` with what the handle names.
template <typename Function>
std::int32_t with_space(const char* call, const void* handle, Function function) try {
  const auto used = shared_spaces().use(handle);
  return used ? function(*used) : no_such_space(call, handle);
}
MEMSPAN_CATCH_IN(call, SMEM_MALLOC_FAILED)

// kInvalidArgument when no `most` ranks or fewer may be numbered so.
Status check_ranks(std::uint32_t size, std::uint32_t rank, std::uint32_t most);

}  // namespace memspan::capi
