// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/stage_writes.h"

#include <algorithm>
#include <bit>

namespace memspan::pgas {

void StageWrites::begin(std::size_t kind, std::size_t bytes) {
  turn_ = {};
  way_ = nullptr;
  if (bytes < kLeastBytes) return;
  const auto size = static_cast<std::size_t>(std::bit_width(bytes / kLeastBytes) - 1) / 2;
  choice_ = &choices_[kind][std::min(size, kSizes - 1)];
  const auto ways = copy_ways();
  turn_ = choice_->next(static_cast<unsigned>(ways.size()));
  way_ = &ways[turn_.way];
  bytes_ = bytes;
  took_ = {};
  resume();
}

void StageWrites::end() {
  pause();
  if (turn_.is_rated()) choice_->rate(turn_, CopyChoice::cost_of(took_, bytes_));
  turn_ = {};
}

}  // namespace memspan::pgas
