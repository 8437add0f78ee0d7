// SPDX-License-Identifier: Apache-2.0
#include "pgas/group/stage_writes.h"

#include <algorithm>
#include <bit>

namespace memspan::pgas {

void StageWrites::begin(std::size_t kind, std::size_t bytes) {
  choice_ = {};
  way_ = nullptr;
  if (bytes < kLeastBytes) return;
  const auto size = static_cast<std::size_t>(std::bit_width(bytes) - std::bit_width(kLeastBytes));
  way_ = &ways_[kind][std::min(size, kSizes - 1)];
  choice_ = way_->next();
  took_ = {};
  resume();
}

void StageWrites::end() {
  pause();
  if (choice_.is_timed) way_->note(choice_.is_past_caches, took_);
  choice_ = {};
}

}  // namespace memspan::pgas
