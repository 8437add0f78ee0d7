// SPDX-License-Identifier: Apache-2.0
#include "device/host/copy_choice.h"

namespace memspan::inline device {
namespace {

constexpr double kMiB = 1 << 20;

// The shorter one that is not 0.
std::uint32_t shorter(std::uint32_t one, std::uint32_t other) {
  return one == 0 || other == 0 ? std::max(one, other) : std::min(one, other);
}

}  // namespace

CopyChoice::Turn CopyChoice::next(unsigned ways) {
  if (ways < 2) return {};
  // A count that is lost to another thread does no harm.
  const std::uint32_t left = left_.load(std::memory_order_relaxed);
  const bool is_look = left != 0;
  if (is_look) {
    left_.store(left - 1, std::memory_order_relaxed);
    if (turns_ == Turns::kByCount || left % kLookGap != 0) return {best(), ways};
  }
  const std::uint32_t call = calls_.load(std::memory_order_relaxed) % (kClosing - 1) + 1;
  calls_.store(call, std::memory_order_relaxed);
  if (!enter(call, is_look)) return {best(), ways};
  if (is_look) return {best(), ways, call, true};
  const unsigned way = turn_ / kTries;
  const bool is_tried = turn_ % kTries == 0 ? !is_behind(way) : !is_hopeless(way);
  return {is_tried ? way : best(), ways, call};
}

bool CopyChoice::enter(std::uint32_t call, bool is_look) {
  std::uint32_t rated = rated_.load(std::memory_order_relaxed);
  if (rated == kClosing || (rated != 0 && call - rated < kLost)) return false;
  if (!rated_.compare_exchange_strong(rated, call, std::memory_order_acquire)) return false;
  if (is_look || left_.load(std::memory_order_relaxed) == 0) return true;
  rated_.store(0, std::memory_order_release);  // the trial has just ended
  return false;
}

std::uint32_t CopyChoice::cost_of(Duration took, std::size_t bytes) {
  const double cost = 1e9 * to_seconds(took) * kMiB / static_cast<double>(bytes);
  return static_cast<std::uint32_t>(std::clamp(cost, 1.0, 4e9));
}

double CopyChoice::bytes_per_second() const {
  return best_cost() == 0 ? 0 : 1e9 * kMiB / best_cost();
}

void CopyChoice::rate(const Turn& turn, std::uint32_t cost) {
  std::uint32_t rated = turn.call;
  // Else it took so long that it was forgotten.
  if (!rated_.compare_exchange_strong(rated, kClosing, std::memory_order_acquire)) return;
  if (turn.is_look) {
    if (cost != 0 && turn.way == best()) look(cost);
  } else {
    const unsigned way = turn_ / kTries;
    if (way != turn.way) cost = 0;  // taken for a hopeless one
    costs_[way][turn_ % kTries] = cost;
    shortest_ = shorter(shortest_, cost);
    if (++turn_ == kTries * turn.ways) end_trial(turn.ways);
  }
  rated_.store(0, std::memory_order_release);
}

void CopyChoice::look(std::uint32_t cost) {
  const bool is_slow =
      best_cost() != 0 && cost > best_cost() + std::uint64_t{best_cost()} / kBehind;
  slow_looks_ = is_slow ? slow_looks_ + 1 : 0;
  if (slow_looks_ < slow_looks_needed_) return;
  slow_looks_needed_ = std::min(2 * slow_looks_needed_, kMostSlowLooks);
  slow_looks_ = turn_ = shortest_ = whole_ = 0;
  trials_ = {};
  repeats_ = kRepeats;
  gap_ = kFirstGap;
  left_.store(0, std::memory_order_relaxed);
}

bool CopyChoice::is_hopeless(unsigned way) const {
  return is_behind(way) || costs_[way][0] > std::uint64_t{kHopeless} * shortest_;
}

bool CopyChoice::is_behind(unsigned way) const {
  if (whole_ == 0 || whole_ == kTrials) return false;
  return cost_of_trials(way) > best_cost() + std::uint64_t{best_cost()} / kBehind;
}

std::uint32_t CopyChoice::cost_in_trial(unsigned way) const {
  std::uint32_t cost = 0;
  for (unsigned i = 1; i < kTries; ++i) cost = shorter(cost, costs_[way][i]);
  return cost != 0 ? cost : costs_[way][0];
}

std::uint32_t CopyChoice::cost_of_trials(unsigned way) const {
  std::array<std::uint32_t, kTrials> costs = trials_[way];
  std::ranges::sort(costs);
  const auto first = std::ranges::find_if(costs, [](std::uint32_t cost) { return cost != 0; });
  const auto known = costs.end() - first;
  return known == 0 ? 0 : first[(known - 1) / 2];
}

void CopyChoice::end_trial(unsigned ways) {
  unsigned found = kMostWays;
  std::uint32_t least = 0;
  bool is_whole = true;
  for (unsigned way = 0; way < ways; ++way) {
    auto& trials = trials_[way];
    if (const std::uint32_t cost = cost_in_trial(way); cost != 0) {
      std::ranges::copy_backward(trials.begin(), trials.end() - 1, trials.end());
      trials[0] = cost;
    }
    const std::uint32_t cost = cost_of_trials(way);
    is_whole = is_whole && cost != 0;
    if (cost == 0 || (least != 0 && cost >= least)) continue;
    found = way;
    least = cost;
  }
  turn_ = shortest_ = 0;
  if (found != kMostWays) {
    const std::uint32_t stays = cost_of_trials(best());
    if (best_cost() == 0 || stays == 0 || least < stays - stays / kGain)
      best_.store(found, std::memory_order_relaxed);
    best_cost_.store(cost_of_trials(best()), std::memory_order_relaxed);
  }
  if (!is_whole && repeats_ != 0) {
    --repeats_;
    return;
  }
  if (whole_ == kTrials) slow_looks_needed_ = std::max(slow_looks_needed_ / 2, kFewestSlowLooks);
  if (whole_ < kTrials && ++whole_ < kTrials) return;
  left_.store(gap_, std::memory_order_relaxed);
  gap_ = std::min(2 * gap_, kLastGap);
}

}  // namespace memspan::inline device
