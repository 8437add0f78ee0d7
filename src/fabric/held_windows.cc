// SPDX-License-Identifier: Apache-2.0
#include "fabric/held_windows.h"

namespace memspan {

bool find_place(Pool& pool, const void* pointer, PoolPlace& place) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  for (const RangeKind kind : {RangeKind::kHost, RangeKind::kDevice}) {
    const RankWindows& windows = pool.windows(kind);
    if (!windows.contains(address)) continue;
    place.kind = kind;
    place.rank = windows.rank_of(address);
    place.offset = windows.offset_of(address, place.rank);
    return true;
  }
  return false;
}

void HeldWindows::release(Held& held) {
  if (held.mapped == 0) return;
  pool_.release(*held.windows, held.rank);
  held.mapped = 0;
}

void HeldWindows::release() {
  for (Held& held : held_) release(held);
}

HeldWindows::Found HeldWindows::look(const void* pointer, std::uint64_t bytes) {
  PoolPlace place;
  if (!find_place(pool_, pointer, place)) return Found::kLocal;
  RankWindows& windows = pool_.windows(place.kind);
  Held& held = held_[(2 * place.rank + static_cast<std::uint32_t>(place.kind)) % held_.size()];
  if (held.mapped == 0 || held.windows != &windows || held.rank != place.rank) {
    release(held);
    const std::uint64_t mapped = pool_.hold(windows, place.rank);
    if (mapped == 0) return Found::kNot;
    held.begin = reinterpret_cast<std::uint64_t>(windows.begin_of(place.rank));
    held.mapped = mapped;
    held.windows = &windows;
    held.rank = place.rank;
    held.admission = windows.admission(place.rank);
  } else if (!held.admission.is_valid()) {
    return Found::kNot;
  }
  last_ = &held;
  return held.contains(reinterpret_cast<std::uint64_t>(pointer), bytes) ? Found::kHeld
                                                                        : Found::kNot;
}

}  // namespace memspan
