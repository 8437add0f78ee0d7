// SPDX-License-Identifier: Apache-2.0
// Distinguishes polling from other reads. A thread that keeps reading the same value from a word of
// its own memory waits for another process to change it. With more processes than cores, that
// process may need the core.
//
// A word may also be a constant, and yielding for it costs time if the other processes are not in
// the job. So yields in vain increase the number of looks before the next one. A poller keeps the
// core for about as long as it has already waited, and a constant costs next to nothing.
//
// It is a small set-associative cache of recently read words, two per set, the latest first. A word
// that is evicted or has a new value starts over. So neither a walk over many words nor a counter
// is polling.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "core/cpu.h"

namespace memspan::inline node {

// One thread at a time.
class PollDetector {
 public:
  // The looks between yields double after this many yields in vain. For a word that was never seen
  // to change, two long yields suffice, and the maximum is higher.
  static constexpr std::uint32_t kYieldsPerDoubling = 8;
  static constexpr std::uint32_t kMostDoublings = 14;
  static constexpr std::uint32_t kMostDoublingsOfFlags = 2;

  // Notes that the word at `address` was found to be `value`.
  void note(const void* address, std::uint64_t value) { find(address, value); }
  // Like note(); true if the caller polls and must let others run.
  bool is_polling(const void* address, std::uint64_t value) {
    Word& word = find(address, value);
    if (word.looks++ < 1u << doublings_of(word)) return false;
    word.looks = 1;
    ++word.yields;
    yielded_ = &word;
    return true;
  }
  // Notes that the yield that is_polling() last asked for took long.
  void note_long_yield() {
    if (!yielded_->is_flag) yielded_->yields += kYieldsPerDoubling / 2 - 1;
  }

 private:
  struct Word {
    std::uintptr_t key = 0;
    std::uint64_t value = 0;
    std::uint32_t looks = 0;   // calls of is_polling() since the last yield, plus the one before it
    std::uint32_t yields = 0;  // with this value; a long yield may count as several
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
  // Uses the upper bits of a product (Knuth's multiplicative hashing), because flags are often a
  // power of two apart.
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

}  // namespace memspan::inline node
