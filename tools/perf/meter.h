// SPDX-License-Identifier: Apache-2.0
// How a job measures. A sample is the time of a batch of operations by its number; batches are as
// short as the clock allows: its cost is at most a fiftieth of a sample's.
//
// All PEs call measure() in the same order with the same arguments. If one PE does the operations
// (kFirst), the others wait in a barrier. If all do (kAll), each sample begins with a barrier and
// is the slowest PE's.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "perf/clock.h"
#include "perf/events.h"
#include "perf/plan.h"
#include "perf/test_table.h"

namespace memspan::perf {

enum class Actors { kFirst, kAll };

// Between shmem_init() and shmem_finalize(). One thread.
class Meter : NotCopyable {
 public:
  using Emit = std::function<void(const Row&)>;
  // `emit` is called on PE 0. All PEs call it together. kOutOfMemory: the symmetric heap has no
  // room for the samples.
  static Result<std::unique_ptr<Meter>> make(Plan plan, Emit emit);
  ~Meter();

  const Plan& plan() const { return plan_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  // The PE that PE 0 sends to: the last one, which is the farthest.
  int far() const { return size_ - 1; }

  // `operations(count)` does so many, one after the other, and has ended when it returns. Each call
  // stands for `each` operations of the test (a window, a batch, a round trip of 2 messages).
  void measure(const Test& test, std::size_t bytes, Actors actors, std::size_t each,
               const std::function<void(std::size_t)>& operations);
  // The same number on all PEs: PE 0's.
  std::size_t agree(std::size_t value);

  // Symmetric memory of zeros for the caller to fill; kOutOfMemory names the size.
  Result<std::byte*> symmetric(std::size_t bytes);
  // Frees all of it.
  void free_symmetric();

 private:
  Meter(Plan plan, Emit emit);
  // Until there are plan_.warm_up samples, or plan_.seconds are over. Nanoseconds of a sample.
  double warm_up(Actors actors, std::size_t count,
                 const std::function<void(std::size_t)>& operations);
  std::size_t choose_count(Actors actors, const std::function<void(std::size_t)>& operations);
  double time_of(Actors actors, std::size_t count,
                 const std::function<void(std::size_t)>& operations) const;

  const Plan plan_;
  const Emit emit_;
  const int rank_;
  const int size_;
  const double clock_ns_;      // of reading the clock
  double* samples_ = nullptr;  // symmetric, plan_.samples
  std::vector<double> others_;
  std::vector<std::byte*> taken_;
};

}  // namespace memspan::perf
