// SPDX-License-Identifier: Apache-2.0
// What is copied: pieces of this process's memory and of the other's, by offsets.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace bench {

struct Piece {
  std::size_t local, remote, bytes;
};

// `size` is what the figure is listed under: a piece's bytes, or all bytes of a mixture.
struct Workload {
  std::string name;
  std::size_t size;
  std::vector<Piece> pieces;
  std::size_t span;  // bytes of either side's memory, from its beginning, that it lies in
};

// One after the other on both sides.
Workload contiguous(const std::string& name, std::size_t count, std::size_t bytes);
// In another random order on each side, with pages or lines between them.
Workload scattered(const std::string& name, std::size_t size,
                   const std::vector<std::size_t>& bytes);

// The block of a language model's cache: 61 layers of 128 KiB and of 16 KiB.
Workload cache_block();
// All that fit into the memory: the block, single pieces, 32 pieces of 32 KiB to 16 MiB contiguous
// and scattered, 100,000 of 256 bytes and of 4 KiB.
std::vector<Workload> all_workloads(std::size_t memory);

}  // namespace bench
