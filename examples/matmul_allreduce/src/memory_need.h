// SPDX-License-Identifier: Apache-2.0
// What a job takes and what the machine has, known before anything is allocated: a job that does
// not fit is refused, because the kernel answers a shortage by killing processes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gemm.h"
#include "tiles.h"

namespace matmul {

// Bytes of one rank.
struct MemoryNeed {
  std::uint64_t matrices = 0;   // A and B
  std::uint64_t result = 0;     // symmetric: C, of each form
  std::uint64_t workspace = 0;  // symmetric: staging slots, or all partial products
  std::uint64_t signals = 0;    // symmetric
  std::uint64_t scratch = 0;    // panels, tiles in flight, the verifier's blocks
  std::uint64_t total = 0;
  // What to ask of SHMEM_SYMMETRIC_SIZE.
  std::uint64_t heap() const;
};

// With so many blocks of a kernel. nullopt when the numbers do not fit in 62 bits.
std::optional<MemoryNeed> memory_need(const Shape& shape, const Multiplier& by, std::uint64_t ranks,
                                      std::uint64_t blocks = 0);

struct MemoryLimit {
  std::uint64_t bytes = 0;
  std::string source;  // "MemAvailable", "a control group", "MEMSPAN_MEMORY_LIMIT"
};

// The least of MemAvailable, what every enclosing control group leaves, and MEMSPAN_MEMORY_LIMIT.
MemoryLimit available_memory();
// All memory of the machine, or MEMSPAN_MEMORY_LIMIT: the same whoever asks and whenever.
std::uint64_t total_memory();

// "1.5G", "300m", "4096" in bytes; nullopt when it is not a size.
std::optional<std::uint64_t> parse_size(const char* text);
std::string format_size(std::uint64_t bytes);

}  // namespace matmul
