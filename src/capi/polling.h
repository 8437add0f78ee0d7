// SPDX-License-Identifier: Apache-2.0
// Looks at words of this PE's own memory that a program makes in a loop until a peer has changed
// them: tests, and fetches of own words. They return at once, so where there are more PEs than
// cores the loop would keep the core that the peer needs until its time slice is over. There, a
// look that finds the same again and again (node/poll_detector.h) lets others run.
#pragma once

#include <cstring>

#include "capi/process_state.h"

namespace memspan::capi {

// A process in such a job notes one of so many looks. The others cost next to nothing in programs
// that read own words for other reasons. The number is prime: a walk around an array, whose length
// often is a power of two, notes another word each time.
inline constexpr std::int32_t kLooksPerNote = 31;
inline bool is_noted_look() {
  // Threads may lose each other's counts, which does no harm.
  const std::int32_t left = __atomic_load_n(&process_state.looks_left, __ATOMIC_RELAXED) - 1;
  __atomic_store_n(&process_state.looks_left, left > 0 ? left : kLooksPerNote, __ATOMIC_RELAXED);
  return left <= 0;
}

// Whether to note the next look: at an own word, or at a word of `pe`.
inline bool has_to_note() {
  return process_state.crowded_rank >= 0 && is_noted_look();
}
inline bool has_to_note(int pe) {
  return pe == process_state.crowded_rank && is_noted_look();
}
// Notes what a look at `word` found. True when other processes have run since: look again, and pass
// the result to note_second_look().
bool note_look(const void* word, std::uint64_t found);
void note_second_look(const void* word, std::uint64_t found);

// Notes and returns what `look` finds: an integer or floating-point number of up to 8 bytes.
template <typename Look>
auto noted(const void* word, Look look) {
  const auto bits_of = [](auto value) {
    static_assert(sizeof value <= sizeof(std::uint64_t));
    std::uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
  };
  const auto first = look();
  if (!note_look(word, bits_of(first))) return first;
  const auto second = look();
  note_second_look(word, bits_of(second));
  return second;
}

}  // namespace memspan::capi
