// SPDX-License-Identifier: Apache-2.0
// A connection to one peer's segment: the data path of whatever cannot be reached by plain loads
// and stores.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"

namespace memspan {

enum class AtomicKind : std::uint8_t { kFetch, kSet, kSwap, kCompareSwap, kAdd, kAnd, kOr, kXor };

// A value. `width` is 4 or 8 bytes; operands stand in the low bytes.
struct AtomicOp {
  AtomicKind kind;
  std::uint8_t width;
  std::uint64_t operand = 0;
  std::uint64_t compare = 0;  // kCompareSwap: expected value
};

// Applies `op` to `word`, atomically among all that do the same, and gives the value before.
std::uint64_t apply_atomic(void* word, const AtomicOp& op);

// Offsets count from the start of the peer's segment. An access that is not wholly inside is
// kInvalidArgument and touches nothing. Thread-safe unless Capabilities says otherwise.
class Link {
 public:
  virtual ~Link() = default;
  // Where the byte at `offset` can be loaded and stored directly, or null.
  virtual std::byte* direct(std::uint64_t offset) = 0;
  // Returns when `from` may be changed; delivered at the latest by quiet().
  virtual Status put(std::uint64_t offset, const void* from, std::size_t bytes) = 0;
  // Returns when the bytes are here.
  virtual Status get(void* to, std::uint64_t offset, std::size_t bytes) = 0;
  // `fetched` may be null. `offset` is a multiple of op.width.
  virtual Status atomic(const AtomicOp& op, std::uint64_t offset, std::uint64_t* fetched) = 0;
  // Puts and atomics before it are delivered before those after it.
  virtual Status fence() = 0;
  // Puts and atomics before it are applied at the target.
  virtual Status quiet() = 0;
};

}  // namespace memspan
