// SPDX-License-Identifier: Apache-2.0
// The command line: long options with a single dash, as users of the original type them.
#pragma once

#include <cstdint>
#include <string>

#include "element_type.h"

namespace matmul {

enum class Blas { kAuto, kOpenBlas, kOneDnn };
// How the fused form brings a product to its tile's owner: stored there directly where shmem_ptr
// reaches it, else put; or always put.
enum class Send { kStore, kPut };

inline constexpr std::uint64_t kMostBlocks = 64;

struct Options {
  std::uint64_t m = 0, k = 0, n = 0;
  ElementType type = ElementType::kFp16;
  std::uint64_t seed = 42;
  int repeat = 0;  // timed repetitions; 0: as many as a few seconds allow
  Blas blas = Blas::kAuto;
  Send send = Send::kStore;
  std::uint64_t blocks = 0;  // of the kernel that is the fused form; 0: host calls
  bool help = false;
};

// What is wrong with the command line, in one line; empty when nothing is, and `options` is set.
// Not thread-safe (getopt).
std::string parse_options(int argc, char* const* argv, Options& options);

extern const char kUsage[];

}  // namespace matmul
