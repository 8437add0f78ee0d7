// SPDX-License-Identifier: Apache-2.0
// Tells polling from other reading. A thread that looks at a word of its own memory again and again
// and finds the same value each time waits for somebody to change it; where there are more
// processes than cores, that one may need the core.
//
// A word may also be one that never changes, and to let others run for its sake costs time where
// they are no members of the job. So after yields in vain there are more looks to the next one: who
// polls keeps the core for about as long as it has waited already, and a constant costs next to
// nothing.
//
// It is a small set-associative cache of the words that were looked at last: two words a set, the
// one that was looked at last first. A word that falls out of it, and one whose value is new,
// begins anew, so that a walk over many words is never polling, nor is a counter.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/cpu.h"

namespace memspan {

// One thread at a time.
class PollDetector {
 public:
  // The looks from one yield to the next double after so many yields in vain. For a word that was
  // never seen to change two long ones do, and they double more often.
  static constexpr std::uint32_t kYieldsPerDoubling = 8;
  static constexpr std::uint32_t kMostDoublings = 14;
  static constexpr std::uint32_t kMostDoublingsOfFlags = 2;

  // Notes that the word at `address` was found to be `value`.
  void note(const void* address, std::uint64_t value) { find(address, value); }
  // The same; true when the caller polls and has to let others run.
  bool is_polling(const void* address, std::uint64_t value) {
    Word& word = find(address, value);
    if (word.looks++ < 1u << doublings_of(word)) return false;
    word.looks = 1;
    ++word.yields;
    yielded_ = &word;
    return true;
  }
  // What is_polling() said last has let others have the core for long.
  void note_long_yield() {
    if (!yielded_->is_flag) yielded_->yields += kYieldsPerDoubling / 2 - 1;
  }

 private:
  struct Word {
    std::uintptr_t key = 0;
    std::uint64_t value = 0;
    std::uint32_t looks = 0;   // by is_polling() since the last yield, and the one before that
    std::uint32_t yields = 0;  // since it has this value; a long one may count as several
    bool is_flag = false;      // it was seen to change
  };
  struct alignas(kCacheLine) Set {
    Word last;
    Word before;
  };
  static constexpr int kSetBits = 5;

  Word& find(const void* address, std::uint64_t value) {
    const auto key = reinterpret_cast<std::uintptr_t>(address);
    Set& set = sets_[set_of(key)];
    if (set.last.key != key) std::swap(set.last, set.before);
    Word& word = set.last;
    if (word.key != key || word.value != value)
      word = {.key = key, .value = value, .is_flag = word.key == key};
    return word;
  }
  // By the upper bits of a product (Knuth's multiplicative hashing): flags often stand a power of
  // two apart.
  static std::size_t set_of(std::uintptr_t key) {
    return static_cast<std::uint64_t>(key) * 0x9e3779b97f4a7c15u >> (64 - kSetBits);
  }
  static std::uint32_t doublings_of(const Word& word) {
    const std::uint32_t doublings = word.yields / kYieldsPerDoubling;
    return std::min(doublings, word.is_flag ? kMostDoublingsOfFlags : kMostDoublings);
  }

  std::array<Set, 1u << kSetBits> sets_{};
  Word* yielded_ = nullptr;
};

}  // namespace memspan
