// SPDX-License-Identifier: Apache-2.0
// Large values of a collective that their readers copy out of the owner's memory
// (process_vm_readv), once, instead of twice by way of pipeline buffers. Design:
// docs/design/0032-direct-reads.md.
//
// Which way is faster differs between processors and sizes. Member 0 measures it, per kind and size
// of calls, and says in the first barrier of each call how the next one of that kind and size goes.
// So all members do the same without another message.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "core/clock.h"
#include "pgas/team.h"

namespace memspan::inline pgas {

// How a call goes. A value.
struct DirectPlan {
  bool is_direct = false;
  bool is_rated = false;
};

// Which way was faster for calls of one kind and size. A trial makes a few calls by each way. Calls
// are planned one ahead, so that a plan knows the costs of all but the call under way.
class DirectTrials {
 public:
  // Before the first trial: until then the writes of buffers have found their own way
  // (StageWrites).
  static constexpr std::uint32_t kCold = 128;
  // By each way; the first finds the caches as the other one left them, and does not count.
  static constexpr std::uint32_t kTries = 3;
  // So many trials follow each other at first. A way's cost is the median of its last ones.
  static constexpr std::uint32_t kTrials = 3;
  // Calls from one trial to the next: at first, and at most. The number doubles.
  static constexpr std::uint32_t kFirstGap = 512;
  static constexpr std::uint32_t kLastGap = 4096;

  // For the call after the one that begins here.
  DirectPlan plan_next();
  // The one under way took so long, for each byte.
  void rate(double cost);

 private:
  static constexpr std::uint32_t kCallsOfTrial = 2 * kTries;
  void end_trial();

  std::uint32_t now_ = 0;  // the number of the call under way
  std::uint32_t next_ = 0;
  std::uint32_t start_ = kCold;  // of a trial
  std::uint32_t gap_ = kFirstGap;
  std::uint32_t trials_ = 0;
  bool is_direct_best_ = false;
  std::array<double, kCallsOfTrial> costs_{};               // 0: not known
  std::array<std::array<double, kTrials>, 2> of_trials_{};  // by way, the newest first
};

// Those of one group. One thread at a time.
class DirectReads : NotCopyable {
 public:
  // Fewer bytes always move through the buffers.
  static constexpr std::size_t kLeastBytes = std::size_t{16} << 10;
  // Members meet after so many bytes of each value, so that no wait grows with the size of a call.
  static constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
  static constexpr std::size_t kKinds = 16;

  DirectReads(World& world, Team& team);

  // The same on all members.
  bool is_possible() const { return is_possible_; }
  // Whether calls with so many bytes for a reader may be direct.
  bool may_serve(std::size_t bytes) const { return is_possible_ && bytes >= kLeastBytes; }
  // For calls of that kind and size: by what member 0 said in the last one.
  DirectPlan plan(std::size_t kind, std::size_t bytes) const {
    return may_serve(bytes) ? plans_[kind][size_of(bytes)] : DirectPlan{};
  }
  // Whether calls of that kind are direct for some size.
  bool has_direct(std::size_t kind) const {
    return is_possible_ && std::ranges::any_of(plans_[kind], &DirectPlan::is_direct);
  }
  // The word that a member gives in the first barrier of a call: about its own values, and member
  // 0's about the next call.
  static constexpr std::uint64_t kDirect = 1;    // they are to be read directly
  static constexpr std::uint64_t kOverlaps = 2;  // results replace them
  std::uint64_t announce(std::size_t kind, std::size_t bytes, std::uint64_t mine);
  void hear(std::size_t kind, std::uint64_t word_of_member_0);

  // Member 0 rates the call from here until end(), without the time between pause() and resume().
  void begin(DirectPlan plan) {
    is_rating_ = plan.is_rated && ratings_ != nullptr;
    took_ = {};
    resume();
  }
  void pause() {
    if (is_rating_) took_ += Clock::now() - since_;
  }
  void resume() {
    if (is_rating_) since_ = Clock::now();
  }
  void end(std::size_t kind, std::size_t bytes);

  // By one of the direct calls, from an address of the member's.
  Status read(int member, void* to, std::uint64_t from, std::size_t bytes);
  // Collective: all have read, and `mine` says how that went. Before finish() a member may be ahead
  // of others. False on all members if some read failed: then refuse() follows.
  Status meet(const char* what, const std::uint64_t* words = nullptr, int count = 0);
  Result<bool> finish(const char* what, const Status& mine);
  // Collective. `memory`: whether this member can access its own. If all can, the kernel does not
  // let others read it: the call has to be done by way of the buffers, as are all later ones.
  Status refuse(const char* what, const Status& mine, const Status& memory);
  // kInvalidArgument, with the address, unless all of it may be accessed so ("r", "w").
  static Status check_memory(const void* base, std::size_t bytes, char access);

  // How many direct calls have ended well.
  std::uint64_t calls() const { return calls_; }

 private:
  static constexpr std::size_t kSizes = 7;  // 16 KiB and more, 64 KiB and more, ... 64 MiB and more
  // More bits of member 0's word; the size is behind them.
  static constexpr std::uint64_t kHasNext = 4;
  static constexpr std::uint64_t kNextIsDirect = 8;
  static constexpr std::uint64_t kNextIsRated = 16;
  static constexpr unsigned kSizeShift = 8;

  using Ratings = std::array<std::array<DirectTrials, kSizes>, kKinds>;

  static std::size_t size_of(std::size_t bytes);
  // The barrier at the end of a direct call that this member left early.
  std::atomic<std::uint64_t>& gave_up_of(int member) const;

  World& world_;
  Team& team_;
  bool is_possible_;
  std::array<std::array<DirectPlan, kSizes>, kKinds> plans_{};
  std::unique_ptr<Ratings> ratings_;  // of member 0
  bool is_rating_ = false;
  Clock::time_point since_;
  Duration took_{};
  std::uint64_t calls_ = 0;
};

}  // namespace memspan::inline pgas
