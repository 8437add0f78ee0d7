// SPDX-License-Identifier: Apache-2.0
// The same job in two steps, for comparison: the whole product, then its reduction.
//
// float and int32 use the library's sum reduction. The 16-bit types, which OpenSHMEM does not
// know, are reduced here in two phases with one barrier between: each rank adds up its share of
// the elements from all ranks in float and rounds it once, then puts it to everybody.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm.h"
#include "workspace.h"

namespace matmul {

class SeparateAllreduce {
 public:
  SeparateAllreduce(const JobSpec& spec, const Place& place, const TilePlan& tiles, Gemm& gemm,
                    Workspace& workspace);
  // This rank's product, into partials().
  void multiply();
  // Collective. When it begins, every rank's product must be complete; when it returns, this
  // rank's result is. 0, or what the library's reduction returned.
  int reduce();

 private:
  void reduce_share(std::uint64_t first, std::uint64_t count);
  void add_from(int peer, std::uint64_t first, std::size_t count, float* sum) const;

  const JobSpec& spec_;
  Place place_;
  const TilePlan& tiles_;
  Gemm& gemm_;
  Workspace& workspace_;
};

}  // namespace matmul
