// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/direct_reads.h"

#include <fmt/format.h>

#include <bit>

#include "core/log.h"
#include "device/process_maps.h"
#include "pgas/exchange_texts.h"
#include "transport/cma/vector_copy.h"

namespace memspan::inline pgas {
namespace {

// A way replaces the other one if it takes less of its time than that: the time of a rated call by
// way of the buffers includes a barrier that others lack.
constexpr double kGain = 7.0 / 8;

// The median of those that are known, the lower one of two; 0: none.
double median(std::array<double, DirectTrials::kTrials> costs) {
  std::ranges::sort(costs);
  const auto first = std::ranges::find_if(costs, [](double cost) { return cost != 0; });
  const auto known = costs.end() - first;
  return known == 0 ? 0 : first[(known - 1) / 2];
}

}  // namespace

DirectPlan DirectTrials::plan_next() {
  now_ = next_++;
  if (next_ < start_) return {is_direct_best_, false};
  // The last cost of a trial is known one call later.
  if (next_ > start_ + kCallsOfTrial) end_trial();
  if (next_ < start_ || next_ == start_ + kCallsOfTrial) return {is_direct_best_, false};
  return {next_ - start_ >= kTries, true};
}

void DirectTrials::rate(double cost) {
  if (now_ >= start_ && now_ < start_ + kCallsOfTrial) costs_[now_ - start_] = cost;
}

void DirectTrials::end_trial() {
  std::array<double, 2> costs{};
  for (std::size_t way = 0; way < 2; ++way) {
    double least = 0;
    for (std::size_t i = way * kTries + 1; i < (way + 1) * kTries; ++i)
      if (costs_[i] != 0 && (least == 0 || costs_[i] < least)) least = costs_[i];
    auto& trials = of_trials_[way];
    std::ranges::copy_backward(trials.begin(), trials.end() - 1, trials.end());
    trials[0] = least;
    costs[way] = median(trials);
  }
  if (const double now = costs[is_direct_best_ ? 1 : 0], other = costs[is_direct_best_ ? 0 : 1];
      now != 0 && other != 0 && other < kGain * now)
    is_direct_best_ = !is_direct_best_;
  costs_ = {};
  start_ = next_;
  if (++trials_ < kTrials) return;
  start_ += gap_;
  gap_ = std::min(2 * gap_, kLastGap);
}

DirectReads::DirectReads(World& world, Team& team)
    : world_(world),
      team_(team),
      is_possible_(world.nodes().is_one() && world.size() > 1 &&
                   world.membership().members.size() == static_cast<std::size_t>(world.size())) {
  if (is_possible_ && team.index() == 0) ratings_ = std::make_unique<Ratings>();
}

std::size_t DirectReads::size_of(std::size_t bytes) {
  const auto size = static_cast<std::size_t>(std::bit_width(bytes / kLeastBytes) - 1) / 2;
  return std::min(size, kSizes - 1);
}

std::uint64_t DirectReads::announce(std::size_t kind, std::size_t bytes, std::uint64_t mine) {
  if (ratings_ == nullptr || !may_serve(bytes)) return mine;
  const std::size_t size = size_of(bytes);
  const DirectPlan next = (*ratings_)[kind][size].plan_next();
  return mine | kHasNext | (next.is_direct ? kNextIsDirect : 0) |
         (next.is_rated ? kNextIsRated : 0) | size << kSizeShift;
}

void DirectReads::hear(std::size_t kind, std::uint64_t word_of_member_0) {
  const std::uint64_t word = word_of_member_0;
  if ((word & kHasNext) == 0) return;
  DirectPlan& plan = plans_[kind][word >> kSizeShift];
  const bool was_direct = plan.is_direct;
  plan = {(word & kNextIsDirect) != 0, (word & kNextIsRated) != 0};
  if (plan.is_direct && !was_direct) let_peers_copy();
}

void DirectReads::end(std::size_t kind, std::size_t bytes) {
  if (!is_rating_) return;
  pause();
  is_rating_ = false;
  (*ratings_)[kind][size_of(bytes)].rate(to_seconds(took_) / static_cast<double>(bytes));
}

Status DirectReads::read(int member, void* to, std::uint64_t from, std::size_t bytes) {
  if (bytes == 0) return Status::ok();
  const ProcessIdentity own = ProcessIdentity::own();
  const ProcessIdentity& owner = world_.membership().members[member].process;
  // A number of another pid namespace may be another process's here.
  const bool is_known = own.pid_namespace != 0 && owner.pid_namespace == own.pid_namespace;
  VectorCopy copy(is_known ? static_cast<pid_t>(owner.process) : 0, MoveDirection::kGet);
  copy.add(static_cast<std::byte*>(to), from, bytes);
  return copy.flush();
}

std::atomic<std::uint64_t>& DirectReads::gave_up_of(int member) const {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(world_.heap_of(member))[1];
}

Status DirectReads::meet(const char* what, const std::uint64_t* words, int count) {
  Status met = team_.barrier(what, words, count);
  // This member's memory changes from now on, and one that was only stopped may still read it.
  if (!met.is_ok())
    gave_up_of(team_.index()).store(team_.sequence() + 1, std::memory_order_release);
  return met;
}

Result<bool> DirectReads::finish(const char* what, const Status& mine) {
  const std::uint64_t has_failed = mine.is_ok() ? 0 : 1;
  MEMSPAN_PASS(meet(what, &has_failed, 1));
  std::atomic_thread_fence(std::memory_order_acquire);
  bool have_all_read = true;
  for (int member = 0; member < team_.size(); ++member) {
    if (gave_up_of(member).load(std::memory_order_acquire) >= team_.sequence())
      return team_.give_up({Code::kTimeout, fmt::format("{}: member {} did not wait until its "
                                                        "memory was read",
                                                        what, member)});
    have_all_read = have_all_read && team_.word(member, 0) == 0;
  }
  if (have_all_read) ++calls_;
  return have_all_read;
}

Status DirectReads::refuse(const char* what, const Status& mine, const Status& memory) {
  MEMSPAN_PASS(agree(exchange_by_barriers(team_, what), memory, "member"));
  is_possible_ = false;
  if (!mine.is_ok())
    log_line(LogLevel::kInfo,
             fmt::format("group: large values are copied twice, through shared memory: {}",
                         mine.message()));
  return Status::ok();
}

Status DirectReads::check_memory(const void* base, std::size_t bytes, char access) {
  auto next = reinterpret_cast<std::uintptr_t>(base);
  const std::uint64_t end = next + bytes;
  MEMSPAN_PASS(look_at_mappings(next, end, [&](const ProcessMapping& mapping) {
    if (mapping.begin > next || mapping.access.find(access) == std::string::npos) return false;
    next = mapping.end;
    return true;
  }));
  if (next >= end) return Status::ok();
  return {Code::kInvalidArgument, fmt::format("there is no {} memory at {:#x} of this process",
                                              access == 'r' ? "readable" : "writable", next)};
}

}  // namespace memspan::inline pgas
