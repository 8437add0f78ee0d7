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

#include <cstdint>

#include "gemm.h"
#include "pages.h"
#include "workspace.h"

namespace matmul {

// One thread at a time. Between two runs all ranks must meet in a barrier.
class FusedAllreduce {
 public:
  FusedAllreduce(const JobSpec& spec, const Place& place, const TilePlan& tiles, Gemm& gemm,
                 Workspace& workspace, Send send);
  bool is_valid() const {
    return in_flight_[0].is_valid() && in_flight_[1].is_valid() && sum_.is_valid();
  }
  // Returns when this rank's result is complete and its own puts are.
  void run();

 private:
  // Consecutive elements of a tile, in the slots and in the result alike.
  struct Piece {
    std::uint64_t in_slot = 0, in_result = 0;  // the first element
    std::uint64_t count = 0;
    bool is_last = false, is_only = false;  // of the tile
  };

  std::byte* slot(std::uint64_t tile, std::uint64_t source) const;
  void compute_own(std::uint64_t tile);
  void compute_there(std::uint64_t tile, void* there);
  void compute_and_put(std::uint64_t tile);
  void compute(std::uint64_t tile);
  std::uint64_t* arrived(std::uint64_t tile) const;
  bool is_next_complete() const;
  void wait_for_next() const;
  void reduce_next();
  void add_slots(const Piece& piece, std::uint64_t number);
  void send(const Piece& piece, std::uint64_t number) const;

  const JobSpec& spec_;
  Place place_;
  const TilePlan& tiles_;
  Gemm& gemm_;
  Workspace& workspace_;
  Send send_;
  Pages in_flight_[2];  // a product stays here until its put is complete
  int next_buffer_ = 0;
  Pages sum_;  // of one piece
  std::uint64_t round_ = 0;
  // Of the tiles this rank owns: how many it has computed, and how many it has reduced.
  std::uint64_t computed_ = 0, reduced_ = 0;
};

}  // namespace matmul
