// SPDX-License-Identifier: Apache-2.0
// The share of a member on another host: found and read by copies of the pool, never written to.
//
//   header ──► cells of the keys ──► descriptors that may be theirs ──► bytes ──► descriptor again
//
// Each arrow is a round trip. It serves all keys, except for the last two, which serve one entry.
// The state word of an entry that was evicted in between differs in the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "fabric/blocks/block_cache.h"

namespace memspan::blocks {

// A value: an entry at the moment when it was seen, by addresses of the pool.
struct RemoteEntry {
  const std::byte* descriptor = nullptr;
  std::byte* data = nullptr;
  Word word = {};
  std::uint64_t bytes = 0;
};

// One thread at a time. The pool must outlive it.
class RemoteShare {
 public:
  RemoteShare(Pool& pool, std::uint32_t rank, Duration limit)
      : pool_(pool), base_(pool.windows(RangeKind::kHost).begin_of(rank)), limit_(limit) {}

  // The entries of keys that are ready; none for others, and when the member has no share. Fails as
  // copies of the pool.
  Result<std::vector<std::optional<RemoteEntry>>> find(std::span<const Key> keys);
  // False if the entry has been evicted.
  Result<bool> read(const RemoteEntry& entry, const Pieces& to);

 private:
  struct Wanted {
    const std::byte* from;
    void* to;
    std::uint64_t bytes;
  };
  Status fetch(std::span<const Wanted> wanted);

  Pool& pool_;
  std::byte* const base_;
  const Duration limit_;
};

}  // namespace memspan::blocks
