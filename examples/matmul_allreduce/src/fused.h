// SPDX-License-Identifier: Apache-2.0
// Product and reduction in one pass, without a barrier.
//
//   every rank, for every tile in order:   product -> slot (tile, rank) at the tile's owner,
//                                          arrived += 1: one put-with-signal; or, where the
//                                          owner's memory is reached by stores, multiplied right
//                                          into the slot, a fence and the signal
//   the owner, between its own products:   arrived == ranks - 1 ?  add the slots in rank order,
//                                          round, put to all, last with a signal (finished = round)
//   every rank, at the end:                waits for the tiles it does not own
//
// All ranks compute tiles in the same order and each link keeps a put before its signal, so a
// rank's tiles become complete in order too: only the next one needs to be looked at. The staging
// memory has a slot for everything, so nobody ever waits for room. The sum's order is fixed:
// results are the same in every run.
#pragma once

#include <memspan/stream.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "calls.h"
#include "fused_pass.h"

namespace matmul {

// One thread at a time. Between two runs all ranks must meet in a barrier.
class FusedAllreduce {
 public:
  // By host calls with `blocks` 0, else by a kernel of so many blocks.
  FusedAllreduce(const FusedJob& job, const Gemm::Input& input, Gemm& gemm, std::uint64_t blocks);
  ~FusedAllreduce();
  FusedAllreduce(const FusedAllreduce&) = delete;
  FusedAllreduce& operator=(const FusedAllreduce&) = delete;
  bool is_valid() const;
  // Returns when this rank's result is complete and its own puts are. False: the kernel could not
  // be run; memspan_last_error() says why.
  bool run();

 private:
  // Each multiplies by itself.
  struct Block {
    Block(const FusedJob& job, const Gemm::Input& input, std::uint64_t number, std::uint64_t blocks)
        : gemm(input, job.tiles), pass(job, gemm, number, blocks) {}
    Gemm gemm;
    FusedPass<KernelCalls> pass;
  };

  const FusedJob job_;
  FusedPass<HostCalls> pass_;
  std::vector<std::unique_ptr<Block>> blocks_;
  memspan_stream_t stream_ = nullptr;
};

}  // namespace matmul
