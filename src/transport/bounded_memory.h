// SPDX-License-Identifier: Apache-2.0
// A range of memory with bounds checks. Links over memory of this process share it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/status.h"
#include "transport/link.h"

namespace memspan {

// A view; owns nothing. Thread-safe.
class BoundedMemory {
 public:
  BoundedMemory(std::byte* base, std::size_t bytes) : base_(base), bytes_(bytes) {}

  bool contains(std::uint64_t offset, std::size_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset;
  }
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }

  Status write(std::uint64_t offset, const void* from, std::size_t bytes) const;
  Status read(void* to, std::uint64_t offset, std::size_t bytes) const;
  Status atomic(const AtomicOp& op, std::uint64_t offset, std::uint64_t* fetched) const;

 private:
  std::byte* base_;
  std::size_t bytes_;
};

}  // namespace memspan
