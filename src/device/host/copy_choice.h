// SPDX-License-Identifier: Apache-2.0
// Which of several ways to copy is the fastest here, learnt from the program's own copies.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/clock.h"

namespace memspan::inline device {

// One kind of copies. At the beginning, and then more and more rarely, each way is tried in some
// copies, one way after the other. The fastest serves the copies between trials, and looks at some
// of these find when it has become slow, because the program now copies other memory or in another
// pattern. Thread-safe: one copy at a time is rated; the others take the fastest way so far.
class CopyChoice {
 public:
  static constexpr unsigned kMostWays = 8;
  // A way's copies in a trial. The first finds the caches as another way left them, and counts only
  // if no other one does.
  static constexpr unsigned kTries = 3;
  // Copies from one trial to the next: at first, and at most. The number doubles.
  static constexpr std::uint32_t kFirstGap = 512;
  static constexpr std::uint32_t kLastGap = 4096;
  // So many trials that say nothing about some way, as copies to new memory, are repeated at once.
  static constexpr unsigned kRepeats = 8;
  // A way's cost is the median of so many trials. The first ones follow each other at once.
  static constexpr unsigned kTrials = 3;
  // A way replaces another one if it takes less than 31/32 of its time.
  static constexpr std::uint32_t kGain = 32;
  // A way whose first try takes so many times the shortest is not tried again; in its turns the
  // fastest way so far is taken.
  static constexpr std::uint32_t kHopeless = 4;
  // So is one that took more than 5/4 of the shortest time in the first trial, in those that follow
  // at once.
  static constexpr std::uint32_t kBehind = 4;
  // One of so many copies between trials is rated. An odd number, so that copies that alternate
  // between two patterns are all seen.
  static constexpr std::uint32_t kLookGap = 31;
  // After so many such copies in a row that took more than 5/4 of the time of the trials, all is
  // tried again. The number doubles with each time, and halves with each other trial.
  static constexpr unsigned kFewestSlowLooks = 4;
  static constexpr unsigned kMostSlowLooks = 64;

  // Trials come by the costs, or only by the number of copies: then processes that count the same
  // copies try the same way at a time, if one thread of each rates every copy that it should.
  enum class Turns { kByCost, kByCount };

  struct Turn {
    unsigned way = 0;
    unsigned ways = 0;
    std::uint32_t call = 0;
    bool is_look = false;
    bool is_rated() const { return call != 0; }  // then rate() must follow
  };

  // The first trial comes after so many copies.
  explicit constexpr CopyChoice(std::uint32_t cold = 0, Turns turns = Turns::kByCost)
      : turns_(turns), left_(cold) {}

  // `ways`: how many there are, always the same number. The first serves until one was found.
  Turn next(unsigned ways);
  // 0: the copy says nothing, as it met page faults or lost the processor.
  void rate(const Turn& turn, std::uint32_t cost);
  // Nanoseconds per MiB; at least 1.
  static std::uint32_t cost_of(Duration took, std::size_t bytes);

  // The fastest so far, and its cost; 0 before the first trial has ended.
  unsigned best() const { return best_.load(std::memory_order_relaxed); }
  std::uint32_t best_cost() const { return best_cost_.load(std::memory_order_relaxed); }
  double bytes_per_second() const;

 private:
  // A copy that rate() does not follow, as after a fault, is forgotten after so many others.
  static constexpr std::uint32_t kLost = 256;
  static constexpr std::uint32_t kClosing = UINT32_MAX;

  bool enter(std::uint32_t call, bool is_look);
  bool is_hopeless(unsigned way) const;
  bool is_behind(unsigned way) const;
  std::uint32_t cost_in_trial(unsigned way) const;
  std::uint32_t cost_of_trials(unsigned way) const;
  void end_trial(unsigned ways);
  void look(std::uint32_t cost);

  const Turns turns_;
  std::atomic<std::uint32_t> calls_{0};
  std::atomic<std::uint32_t> left_;  // copies before the next trial; 0: it has begun
  std::atomic<std::uint32_t> best_cost_{0};
  std::atomic<unsigned> best_{0};
  // The call that is being rated; 0: none. kClosing: its thread changes what is below.
  std::atomic<std::uint32_t> rated_{0};

  unsigned turn_ = 0;           // of the trial
  std::uint32_t shortest_ = 0;  // of the trial; 0: none
  std::uint32_t gap_ = kFirstGap;
  unsigned repeats_ = kRepeats;  // left
  unsigned whole_ = 0;           // trials of all ways, until kTrials
  unsigned slow_looks_ = 0;      // in a row
  unsigned slow_looks_needed_ = kFewestSlowLooks;
  std::array<std::array<std::uint32_t, kTries>, kMostWays> costs_{};
  // The costs in the last trials, the newest first; 0: none.
  std::array<std::array<std::uint32_t, kTrials>, kMostWays> trials_{};
};

}  // namespace memspan::inline device
