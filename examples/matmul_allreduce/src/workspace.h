// SPDX-License-Identifier: Apache-2.0
// The symmetric memory of a job, at the same offsets on every rank.
//
//   results   C, m x n elements, row-major: one for each form, so that both are verified at once
//   partials  either this rank's whole product (the separate form), or staging slots (the fused
//             form), one for each tile this rank reduces and each source
//   arrived   a counter for each tile this rank reduces: how many others' parts are in their slots
//   finished  a word for each tile of the result: the round whose sum is in place
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory_need.h"
#include "tiles.h"
#include "verify.h"

namespace matmul {

// The two ways the job is done.
enum class Form { kSeparate, kFused };

// Allocates and frees collectively: construct and destroy on every rank, in the same order.
class Workspace {
 public:
  explicit Workspace(const MemoryNeed& need);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // The same on every rank.
  bool is_valid() const {
    return results_ != nullptr && partials_ != nullptr && signals_ != nullptr;
  }
  std::byte* result(Form form) const {
    return results_ + (form == Form::kFused ? result_bytes_ : 0);
  }
  std::uint64_t result_bytes() const { return result_bytes_; }
  std::byte* partials() const { return partials_; }
  std::uint64_t* arrived(std::uint64_t owned) const { return signals_ + owned; }
  std::uint64_t* finished(const TilePlan& tiles, std::uint64_t tile) const {
    return signals_ + tiles.slots() + tile;
  }

 private:
  std::uint64_t result_bytes_;
  std::byte* results_ = nullptr;
  std::byte* partials_ = nullptr;
  std::uint64_t* signals_ = nullptr;
};

// What this process is in the job.
struct Place {
  int rank = 0;
  int ranks = 1;
};

}  // namespace matmul
